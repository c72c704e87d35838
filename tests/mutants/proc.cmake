# Mutants of src/proc: see run.cmake.
mutant(real_user_owns_the_list FILE src/proc/jit_map.cc TEST proc_test
       FROM [[if (is_user && index == 1)]] TO [[if (is_user && index == 3)]]
       SURVIVES "real, effective and filesystem user are the same in all processes of the tests"
       SAYS "The list of a JIT compiler of another effective user is refused.")
mutant(outer_number_of_a_container FILE src/proc/jit_map.cc TEST proc_test
       FROM [[if (!is_user) identity.inner_pid = ]] TO [[if (!is_user && index == 0) identity.inner_pid = ]]
       SAYS "The JIT functions of a process in a container have no names.")
mutant(begin_plus_size_overflows FILE src/proc/jit_map.cc TEST proc_test
       FROM [[*size == 0 || *size > UINT64_MAX - *begin || ]] TO [[*size == 0 || ]]
       SAYS "A damaged line gives a function that ends before it begins.")
mutant(jit_end_belongs_to_it FILE src/proc/jit_map.cc TEST proc_test
       FROM [[return pc < function.end ?]] TO [[return pc <= function.end ?]]
       SAYS "The first address after a JIT function has its name.")
mutant(new_list_read_from_the_old_place FILE src/proc/jit_map.cc TEST proc_test
       FROM [[return before.ok() && before->text == last_;]] TO [[return true;]]
       SAYS "A list that was made anew is read from its middle: its first functions have no names.")
mutant(longer_list_goes_on_where_it_ended FILE src/proc/jit_map.cc TEST proc_test
       FROM [[if (tail.inode == inode_ && tail.changed_ns == changed_ns_)]]
       TO [[if (tail.inode == inode_ && tail.size >= read_bytes_)]]
       SAYS "The first functions of a list that was written anew in the same file, and is longer, have no names.")
mutant(cut_list_goes_on_where_it_ended FILE src/proc/jit_map.cc TEST proc_test
       FROM [[  if (tail.size < read_bytes_) return false;
  if (tail.inode == inode_ && tail.changed_ns == changed_ns_) return true;
  const auto before = sys::ReadOwnedTail(list, owners_, read_bytes_ - last_.size(), last_.size());
  return before.ok() && before->text == last_;]]
       TO [[  return tail.inode == inode_;]]
       SAYS "The functions of a list that was cut and written anew have no names.")
mutant(forks_trust_anybodys_list FILE src/proc/jit_map.cc TEST proc_test
       FROM [[parent_ == nullptr || is_refused_) return own;]] TO [[parent_ == nullptr) return own;]]
       SAYS "A forked process whose list is another user's has its parent's names for code of its own.")
mutant(half_a_line_is_taken FILE src/proc/jit_map.cc TEST proc_test
       FROM [[  text.resize(end + 1);
]]
       TO [[]]
       SAYS "A line that is being written is taken with half of its name, and the rest never read.")
mutant(rest_of_the_old_function FILE src/proc/jit_map.cc TEST proc_test
       FROM [[JitFunction{function.end, before.end, before.name,]] TO [[JitFunction{function.end, function.end, before.name,]]
       SAYS "What is left of a function after a new one inside it has no name.")
mutant(kernel_module_in_the_name FILE src/proc/kallsyms.cc TEST proc_test
       FROM [[base::Cut(names, '\t')]] TO [[base::Cut(names, ' ')]]
       SAYS "Functions of kernel modules are named with their module, and their module is empty.")
mutant(rights_swapped FILE src/proc/maps.cc TEST proc_test
       FROM [[map.executable = rights[2] == 'x';]] TO [[map.executable = rights[1] == 'x';]]
       SAYS "No code of a process that runs already is known.")
mutant(device_numbers_swapped FILE src/proc/maps.cc TEST proc_test
       FROM [[ParseHexPair(TakeWord(line), ':', map.device_major, map.device_minor)]]
       TO [[ParseHexPair(TakeWord(line), ':', map.device_minor, map.device_major)]]
       SAYS "A file is two modules: one from records, one from /proc.")
mutant(inode_in_hexadecimal FILE src/proc/maps.cc TEST proc_test
       FROM [[const std::optional<uint64_t> inode = base::ParseNumber(TakeWord(line));]]
       TO [[const std::optional<uint64_t> inode = base::ParseNumber(TakeWord(line), 16);]]
       SAYS "Each file is taken for another than the one that ran: no names.")
mutant(replaced_file_is_believed FILE src/proc/module_file.cc TEST proc_test
       FROM [[return id.inode != 0 && (stamp.inode]] TO [[return id.inode == 0 && (stamp.inode]]
       SAYS "After an update, functions are named by the new file.")
mutant(file_of_another_device_is_believed FILE src/proc/module_file.cc TEST proc_test
       FROM [[const bool elsewhere = id.device != 0]] TO [[const bool elsewhere = false]]
       SAYS "Code in a container is named by a file with the same path and inode outside of it.")
mutant(jit_list_is_read_for_new_code_only FILE src/proc/jit_map.cc TEST proc_test
       FROM [[  ReadMore();
  const std::optional<JitFunction> own]] TO [[  if (!Known(pc)) ReadMore();
  const std::optional<JitFunction> own]]
       SAYS "New code at an address that was used before has the name of the old code.")
mutant(parents_later_code_is_the_childs FILE src/proc/jit_map.cc TEST proc_test
       FROM [[if (!inherited || !inherited->reused) return inherited;]] TO [[if (inherited) return inherited;]]
       SAYS "Code that a process has inherited has the name of what its parent made there after the fork.")
mutant(change_between_mappings_is_missed FILE src/proc/processes.cc TEST proc_test
       FROM [[state == FileState::kChanged) {]] TO [[state == FileState::kUnchanged) {]]
       SAYS "A library without build-id that was rebuilt and loaded again has the names of its first build.")
mutant(file_that_is_gone_is_believed FILE src/proc/processes.cc TEST proc_test
       FROM [[    id.uncertain = true;
]] TO [[]]
       SAYS "Names are those of one of several builds of a library without build-id.")
mutant(changed_file_is_believed FILE src/proc/module_file.cc TEST proc_test
       FROM [[id.mapped_ns != 0 && IsChangedSince(]] TO [[id.mapped_ns == 0 && IsChangedSince(]]
       SAYS "A file that was written anew in place names the functions of the old one.")
mutant(other_build_is_believed FILE src/proc/module_file.cc TEST proc_test
       FROM [[if (id.build_id.empty()) return absl::OkStatus();]] TO [[if (!id.build_id.empty()) return absl::OkStatus();]]
       SAYS "Functions are named by a file of another build.")
mutant(file_place_is_address FILE src/proc/module_file.cc TEST proc_test
       FROM [[return segment.address + (offset - segment.offset);]] TO [[return segment.address + offset;]]
       SAYS "Each function of a program linked by lld has the name of another.")
mutant(exec_keeps_the_old_program FILE src/proc/processes.cc TEST proc_test
       FROM [[  process.space.Clear();
  process.life = process.epoch;]]
       TO [[  process.life = process.epoch;]]
       SAYS "After exec, addresses are named by the program before.")
mutant(fork_has_nothing FILE src/proc/processes.cc TEST proc_test
       FROM [[  child.space = std::move(space);
]]
       TO [[  child.space = Space();
]]
       SAYS "No code of a forked child has a name.")
mutant(child_of_an_unknown_parent FILE src/proc/processes.cc TEST proc_test
       FROM [[if (of_child.ok()) Install(*of_child);]] TO [[]]
       SAYS "A daemon whose parent ended before its FORK record was read has no names.")
mutant(thread_exit_ends_the_process FILE src/proc/processes.cc TEST proc_test
       FROM [[if (exit.pid != exit.tid) return;]] TO [[if (exit.pid == exit.tid) return;]]
       SAYS "Processes that ended are kept for ever; those whose threads end are forgotten.")
mutant(successor_is_forgotten FILE src/proc/processes.cc TEST proc_test
       FROM [[if (oldest != nullptr && oldest->epoch == epoch) Forget(pid);]] TO [[if (oldest != nullptr) Forget(pid);]]
       SAYS "A living process whose number was used before loses its code.")
mutant(last_process_is_remembered FILE src/proc/processes.cc TEST proc_test
       FROM [[if (last_ != nullptr && last_pid_ == pid) return last_;]] TO [[if (last_ != nullptr) return last_;]]
       SAYS "Addresses of one process are named by the code of another.")
mutant(jit_code_of_all_processes FILE src/proc/processes.cc TEST proc_test
       FROM [[    id.life = process.life;
    id.parent]]
       TO [[    id.life = process.life * 0;
    id.parent]]
       SAYS "JIT code of one process is named by the list of another.")
mutant(right_rest_keeps_its_offset FILE src/proc/space.cc TEST proc_test
       FROM [[  right.offset += end - right.begin;
]]
       TO [[]]
       SAYS "Code after a mapping that was cut is named as other functions of its file.")
mutant(left_rest_is_lost FILE src/proc/space.cc TEST proc_test
       FROM [[if (left.begin < left.end &&]] TO [[if (left.begin > left.end &&]]
       SAYS "Code before a new mapping has no names any more.")
mutant(range_includes_its_end FILE src/proc/space.cc TEST proc_test
       FROM [[return at < range.end;]] TO [[return at <= range.end;]]
       SAYS "The first address of a library is given to what is mapped below it.")
mutant(mount_hides_the_group FILE src/proc/cgroup_mounts.cc TEST proc_test CASES "groups are *"
       FROM [[  std::ranges::stable_sort(mounts,]] TO [[  if (mounts.empty()) std::ranges::stable_sort(mounts,]]
       SAYS "A mount of some groups hides the other ones.")
mutant(blanks_of_groups_stay_octal FILE src/proc/cgroup_mounts.cc TEST proc_test CASES "groups with blanks*"
       FROM [[if (text[at] == '\\' && digits]] TO [[if (text[at] == '/' && digits]]
       SAYS "A CPU quota of a group with a blank in its name is not found.")
mutant(late_reading_holds_at_once FILE src/proc/processes.cc TEST proc_test CASES "[processes]"
       FROM [[const bool is_late = time_ns && !same &&]] TO [[const bool is_late = time_ns && !same && false &&]]
       SAYS "What a child did before an exec has the names of its parent's, or its own, new program.")
mutant(ids_of_another_namespace FILE src/proc/threads.cc TEST proc_test CASES "[threads]"
       FROM [[return all.find('\t') != std::string_view::npos || (]] TO [[return (]]
       SAYS "A thread whose id is that of another pid namespace is said to have ended.")
mutant(long_jit_list_is_whole FILE src/proc/jit_map.cc TEST proc_test CASES "[jit_map]"
       FROM [[is_cut_ = tail->size > kMaxBytes;]] TO [[is_cut_ = read_bytes_ >= kMaxBytes;]]
       SAYS "A list of functions that was cut at the limit of bytes is said to be whole.")
mutant(list_of_an_earlier_process FILE src/proc/jit_map.cc TEST proc_test CASES "a list of an earlier*"
       FROM [[if (tail->changed_ns + slack_ns >= started_ns_) return tail;]]
       TO [[if (tail->changed_ns + slack_ns >= 0) return tail;]]
       SAYS "JIT code has the names of a process that had the same number before, as in a container that was started again.")
