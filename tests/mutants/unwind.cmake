# Mutants of src/unwind: see run.cmake.
mutant(restored_row_is_kept FILE src/unwind/dwarf/cfi/cfi_program.cc TEST unwind_dwarf_test
       FROM [[      row_ = remembered_.back();
]]
       TO [[]]
       SAYS "After an early return in a function its stacks end or go wrong.")
mutant(restore_is_undefined FILE src/unwind/dwarf/cfi/cfi_program.cc TEST unwind_dwarf_test
       FROM [[row_.registers[number] = cie_->initial.registers[number];]] TO [[row_.registers[number] = {};]]
       SAYS "A register that a function gave back early is taken for lost.")
mutant(advance_without_factor FILE src/unwind/dwarf/cfi/cfi_program.cc TEST unwind_dwarf_test
       FROM [[MoveTo(location_ + delta * cie_->code_alignment)]] TO [[MoveTo(location_ + delta)]]
       SAYS "On arm64 each row of a function begins at a quarter of its place: stacks end in the first frames.")
mutant(offset_without_factor FILE src/unwind/dwarf/cfi/cfi_program.cc TEST unwind_dwarf_test
       FROM [[factor * static_cast<uint64_t>(cie_->data_alignment)]] TO [[factor * uint64_t{8}]]
       SAYS "Saved registers are looked for above the frame instead of below: each stack ends at its first frame.")
mutant(cfa_sf_is_not_scaled FILE src/unwind/dwarf/cfi/cfi_program.cc TEST unwind_dwarf_test
       FROM [[return SetCfa(number, Scaled(static_cast<uint64_t>(reader_.Sleb())));]]
       TO [[return SetCfa(number, reader_.Sleb());]]
       SAYS "Frames of functions that use DW_CFA_def_cfa_sf are looked for elsewhere.")
mutant(val_offset_is_offset FILE src/unwind/dwarf/cfi/cfi_program.cc TEST unwind_dwarf_test
       FROM [[Set(number, Recovery::kOffset, Scaled(reader_.Uleb())); return true;]]
       TO [[Set(number, Recovery::kAtOffset, Scaled(reader_.Uleb())); return true;]]
       SAYS "A register that is an address in the frame is read from that address.")
mutant(cfa_register_drops_the_offset FILE src/unwind/dwarf/cfi/cfi_program.cc TEST unwind_dwarf_test
       FROM [[SetCfa(reader_.Uleb(), row_.cfa.value);]] TO [[SetCfa(reader_.Uleb(), 0);]]
       SAYS "Stacks of functions with a frame pointer end at them.")
mutant(endless_remembering FILE src/unwind/dwarf/cfi/cfi_program.cc TEST unwind_dwarf_test
       FROM [[      if (remembered_.size() == kMaxRemembered) return false;
]]
       TO [[]]
       SAYS "A hostile file fills the memory with rows.")
mutant(last_row_is_lost FILE src/unwind/dwarf/cfi/cfi_program.cc TEST unwind_dwarf_test
       FROM [[  if (!stopped_) MoveTo(end_);
]]
       TO [[]]
       SAYS "The body of each function after its prologue cannot be unwound.")
mutant(args_size_has_no_operand FILE src/unwind/dwarf/cfi/cfi_program.cc TEST unwind_dwarf_test
       FROM [[case DW_CFA_GNU_args_size: reader_.Uleb(); return true;]] TO [[case DW_CFA_GNU_args_size: return true;]]
       SAYS "The operand is run as an instruction: all rows after it are wrong.")
mutant(usual_row_keeps_its_register FILE src/unwind/dwarf/cfi/usual_program.cc TEST unwind_dwarf_test CASES "*usual*,*libraries*"
       FROM [[    core_.cfa.number = static_cast<uint32_t>(number);
    only_offset_changed_ = false;
]]
       TO [[    core_.cfa.number = static_cast<uint32_t>(number);
]]
       SAYS "After the prologue of a function with a frame pointer, its CFA is still looked for by sp.")
mutant(usual_restore_is_of_the_rule_before FILE src/unwind/dwarf/cfi/usual_program.cc TEST unwind_dwarf_test CASES "*usual*,*libraries*"
       FROM [[core_ = remembered_.cores[--remembered_count_];
        only_offset_changed_ = false;]]
       TO [[core_ = remembered_.cores[--remembered_count_];]]
       SAYS "After an early return in a function its stacks go wrong.")
mutant(usual_return_address_is_where_it_was FILE src/unwind/dwarf/cfi/usual_program.cc TEST unwind_dwarf_test CASES "what is rare*"
       FROM [[if (number == machine_.return_address) return &core.pc;]] TO [[]]
       SAYS "A function that saves its return address elsewhere gives a wrong caller.")
mutant(usual_fde_begins_at_its_id FILE src/unwind/dwarf/cfi/cfi_records.cc TEST unwind_dwarf_test
       FROM [[fde.begin = section_.address + at_begin +]] TO [[fde.begin = section_.address + at_id +]]
       SAYS "Each function begins four bytes early.")
mutant(slow_row_has_the_number_of_the_next FILE src/unwind/dwarf/live/frozen_cfi_rows.cc TEST unwind_dwarf_test CASES "*rows*"
       FROM [[    return number = static_cast<int32_t>(rows_.size());]] TO [[    return number = static_cast<int32_t>(rows_.size() + 1);]]
       SAYS "Live stacks step through a signal frame or an aligned frame by the row of another one.")
mutant(rot_the_other_way FILE src/unwind/dwarf/cfi/expression.cc TEST unwind_dwarf_test
       FROM [[      std::swap(Top(), Top(1));
      std::swap(Top(1), Top(2));]]
       TO [[      std::swap(Top(1), Top(2));
      std::swap(Top(), Top(1));]]
       SAYS "Expressions with DW_OP_rot give another register.")
mutant(shift_of_64 FILE src/unwind/dwarf/cfi/expression.cc TEST unwind_dwarf_test
       FROM [[Push(right < 64 ? left << right : 0)]] TO [[Push(left << (right & 63))]]
       SAYS "A shift by 64 and more gives a number instead of 0.")
mutant(minus_reversed FILE src/unwind/dwarf/cfi/expression.cc TEST unwind_dwarf_test
       FROM [[Push(left - right)]] TO [[Push(right - left)]]
       SAYS "Frames that an expression describes (PLT, signal frames) are not found.")
mutant(jump_from_the_opcode FILE src/unwind/dwarf/cfi/expression.cc TEST unwind_dwarf_test
       FROM [[const int64_t target = static_cast<int64_t>(reader_.at()) + distance;]]
       TO [[const int64_t target = static_cast<int64_t>(reader_.at()) + distance - 2;]]
       SAYS "Jumps in expressions land two bytes early.")
mutant(lowest_by_minus_one_traps FILE src/unwind/dwarf/cfi/expression.cc TEST unwind_dwarf_test
       FROM [[  if (right == ~uint64_t{0}) return Push(-left);
]]
       TO [[]]
       SAYS "A hostile file ends the process with SIGFPE.")
mutant(generation_not_in_the_key FILE src/unwind/dwarf/sampled/rule_cache.h TEST unwind_dwarf_test
       FROM [[return address | uint64_t{generation} << kAddressBits;]] TO [[return address | uint64_t{generation != 0} << kAddressBits;]]
       SAYS "After dlclose and dlopen, code is unwound by the rules of what was there before.")
mutant(guess_is_not_checked FILE src/unwind/dwarf/sampled/rule_cache.h TEST unwind_dwarf_test
       FROM [=[if (entries_[guess].key == key) [[likely]] {]=]
       TO [[if (entries_[guess].key != 0) {]]
       SAYS "A frame is unwound by the rule of another.")
mutant(younger_of_two_goes FILE src/unwind/dwarf/sampled/rule_cache.h TEST unwind_dwarf_test
       FROM [[    entries_[first + 1] = entries_[first];
]]
       TO [[]]
       SAYS "Half of the cache is never used: unwinding takes longer.")
mutant(slow_frame_is_the_root FILE src/unwind/dwarf/sampled/fast_path_walk.h TEST unwind_dwarf_test
       FROM [[rule_->kind != RuleKind::kRoot) return false;]] TO [[rule_->kind < RuleKind::kRoot) return false;]]
       SAYS "Stacks end at their first frame with an unusual rule, and are called whole.")
mutant(live_slow_frame_is_the_root FILE src/unwind/dwarf/live/live_walk.cc TEST unwind_dwarf_test
       FROM [[is_root = rule.kind == RuleKind::kRoot;]] TO [[is_root = rule.kind >= RuleKind::kRoot;]]
       SAYS "Live stacks end at their first frame with an unusual rule, and are called whole.")
mutant(zero_is_a_usual_caller FILE src/unwind/step.h TEST unwind_test CASES "[step]"
       FROM [[return (pc - 1) >> 48 == 0;]] TO [[return pc >> 48 == 0;]]
       SAYS "A thread's first function has a caller at address 0, and the stack does not reach its root.")
mutant(word_beyond_the_copy FILE src/unwind/stack_bytes.h TEST unwind_test
       FROM [[words_(size_ < sizeof(uint64_t) ? 0 : size_ - sizeof(uint64_t) + 1) {}]] TO [[words_(size_) {}]]
       SAYS "The unwinder reads up to 7 bytes past the copied stack.")
mutant(truncated_is_unreadable FILE src/unwind/stack_bytes.h TEST unwind_dwarf_test
       FROM [[const bool past_end = address >= begin_ && ]] TO [[const bool past_end = address < begin_ && ]]
       SAYS "A stack that needs more copied bytes is reported as damaged.")
mutant(plt_entry_pushes_nothing FILE src/unwind/dwarf/cfi/code_evidence.cc TEST unwind_dwarf_test
       FROM [[return {.offset = 11, .kind = RuleKind::kPlt};]] TO [[return {.offset = 8, .kind = RuleKind::kSp};]]
       SAYS "Stacks of programs linked by lld end where a function is bound.")
mutant(any_call_may_have_led_here FILE src/unwind/dwarf/cfi/code_evidence.h TEST unwind_dwarf_test
       FROM [[return pc - called < kLargestFunction;]] TO [[return pc - called != kLargestFunction;]]
       SAYS "Old return addresses on the stack are taken for callers of leaves.")
mutant(planted_after_a_call FILE src/unwind/dwarf/live/live_walk.cc TEST unwind_dwarf_test
       FROM [[.kind == CallKind::kNone && module.functions.Begins(pc);]] TO [[.kind == CallKind::kNone;]]
       SAYS "A damaged stack is called complete.")
mutant(numbers_begin_anew_under_walks FILE src/unwind/dwarf/sampled/walker.cc TEST unwind_dwarf_test CASES "a batch finds the rules*"
       FROM [[(others == 0 || rules_.HasNewGeneration())]] TO [[(others == 0 || rules_.HasNewGeneration() || true)]]
       SAYS "After 65,535 changes of mappings a walk uses the rules of another process.")
mutant(zero_is_always_outermost FILE src/unwind/dwarf/cfi/stack_walk.h TEST unwind_dwarf_test CASES "[bare]"
       FROM [[    if (code.IsAfterCall(caller.pc)) return false;
]] TO [[
]]
       SAYS "Stacks that end in the middle, in code without information that counts in rbp, are called complete.")
mutant(handler_is_outermost FILE src/unwind/dwarf/cfi/stack_walk.h TEST unwind_dwarf_test CASES "[bare]"
       FROM [[rule.kind == RuleKind::kSignal) return false;
  }
  return false;]] TO [[rule.kind == RuleKind::kInstalls) return false;
  }
  return false;]]
       SAYS "The stack of a handler on a stack of its own is called complete without what the signal interrupted.")
mutant(a_cut_stack_has_an_end FILE src/unwind/dwarf/sampled/walker.cc TEST unwind_dwarf_test CASES "[bare]"
       FROM [[return copy.bytes.size() < copy.reserved;]] TO [[return copy.bytes.size() <= copy.reserved;]]
       SAYS "Of stacks that exceed the copied bytes some are called complete.")
mutant(entry_calls_nothing FILE src/unwind/dwarf/cfi/stack_walk.h TEST unwind_dwarf_test CASES "what the code at the entry*"
       FROM [[rule.kind == RuleKind::kEntry && IsCalledByEntry(]] TO [[false && IsCalledByEntry(]]
       SAYS "A function that is right after the entry point is called the root of its stacks.")
mutant(rules_of_replaced_mappings FILE src/proc/processes.cc TEST unwind_dwarf_test CASES "a walk finds the rules of the mappings*"
       FROM [[process.epoch;
  last_ = nullptr;
  ++changes_;]] TO [[process.epoch;
  last_ = nullptr;]]
       SAYS "After an exec stacks are unwound by the rules of the program before.")
mutant(rules_of_a_forgotten_process FILE src/proc/processes.cc TEST unwind_dwarf_test CASES "a walk finds the rules of the mappings*"
       FROM [[  ++changes_;
  processes_.erase(pid);]] TO [[  processes_.erase(pid);]]
       SAYS "A walk reads the mappings of a process that was forgotten, in memory that was freed.")
mutant(rules_of_another_pid FILE src/unwind/dwarf/sampled/process_rules.h TEST unwind_dwarf_test CASES "a batch finds the rules*"
       FROM [[latest_changes_ != processes_.changes() || latest_pid_ != pid]] TO [[latest_changes_ != processes_.changes()]]
       SAYS "The stacks of a process are unwound by the rules of another one.")
mutant(bounds_outlive_the_thread FILE src/unwind/dwarf/live/thread_stack_bounds.cc TEST unwind_dwarf_test CASES "the bounds of a thread that ended*"
       FROM [[  Slot& slot = slots_[base::Mix(thread)]] TO [[  tid = 1;
  Slot& slot = slots_[base::Mix(thread)]]
       SAYS "A walk on a fiber below the stack of a later thread ends the program with SIGSEGV.")
mutant(guess_is_planted FILE src/unwind/dwarf/sampled/walker.cc TEST unwind_dwarf_test CASES "a sampled stack ends at a planted*"
       FROM [[(!at.interrupted && !at.guess)]] TO [[!at.interrupted]]
       SAYS "Stacks that end at a wrong guess are called complete.")
mutant(rule_before_a_planted_address_is_cached FILE src/unwind/dwarf/live/live_walk.cc TEST unwind_dwarf_test CASES "a return address is planted*"
       FROM [[(returns ? 0 : kMayBePlanted)]] TO [[0]]
       SAYS "After one guess the stacks of fibers are never complete again.")
mutant(fiber_entry_has_a_caller FILE src/unwind/dwarf/cfi/code_evidence.cc TEST unwind_dwarf_test CASES "the entry of a fiber*"
       FROM [[if (offset < end) return true;]] TO [[if (offset + 1 < end) return true;]]
       SAYS "The call of _exit at the end of a fiber of Boost.Context has no root.")
mutant(chain_of_user_code_is_the_kernels FILE src/unwind/kernel_frames.cc TEST unwind_test CASES "[kernel_frames]"
       FROM [[!pc || sample.cpu_mode() != CpuMode::kKernel]] TO [[!pc]]
       SAYS "Samples in user code have frames in the kernel.")
mutant(outer_frames_are_not_in_order FILE src/unwind/dwarf/cfi/stack_walk.h TEST unwind_dwarf_test CASES "both ends of a deep stack*"
       FROM [[std::rotate(frames.begin() + inner(), frames.begin() + found.frames, frames.end());]] TO [[]]
       SAYS "The outermost calls of deep stacks are in the wrong order.")
mutant(one_omitted_frame_more FILE src/unwind/dwarf/cfi/stack_walk.h TEST unwind_dwarf_test CASES "both ends of a deep stack*"
       FROM [[found.omitted = (laps - 1) * outer + newest;]] TO [[found.omitted = laps * outer + newest;]]
       SAYS "A stack says that more of its calls were left out than were.")
mutant(installing_code_has_true_information FILE src/unwind/dwarf/live/live_walk.cc TEST unwind_dwarf_test CASES "no live stack that lacks frames*"
       FROM [[if (module.Installs(address - module.bias))]] TO [[if (false)]]
       SAYS "Stacks of a throw that lack frames are called complete.")
mutant(installing_begins_at_the_last_call FILE src/unwind/dwarf/cfi/code_evidence.cc TEST unwind_dwarf_test CASES "no stack that lacks frames*"
       FROM [[if (++calls == 2)]] TO [[if (++calls == 1)]]
       SAYS "Stacks of a throw that lack frames are called complete.")
mutant(zstd_may_fall_short FILE src/unwind/dwarf/cfi/unzstd.cc TEST unwind_dwarf_test CASES "a section is what it was*"
       FROM [[zstd.is_error(done) != 0 || done != size]] TO [[zstd.is_error(done) != 0]]
       SAYS "A damaged section ends in zeros, which are read as debug information.")
mutant(zstd_header_is_content FILE src/unwind/dwarf/cfi/inflate.cc TEST unwind_dwarf_test CASES "a section is what it was*"
       FROM [[section.subspan(sizeof(Elf64_Chdr)), *size]] TO [[section, *size]]
       SAYS "Files with sections that zstd compressed have no lines.")
mutant(returned_calls_live_on FILE src/unwind/dwarf/sampled/stack_stitcher.cc TEST unwind_dwarf_test
       FROM [[    stack.alive = std::max(stack.alive, alive);]] TO [[]]
       SAYS "A truncated stack gets the callers of a call that has returned, and was made again by another function.")
mutant(one_stack_is_several FILE src/unwind/dwarf/sampled/stack_stitcher.cc TEST unwind_dwarf_test
       FROM [[known_same >= kMany || agreeing >= 2]] TO [[known_same >= kMany || agreeing >= 1]]
       SAYS "Two equal calls of one old stack decide about the callers of one that may be another.")
mutant(any_caller_is_the_root FILE src/unwind/dwarf/cfi/stack_walk.h TEST unwind_dwarf_test
       FROM [[    if (rule.kind != RuleKind::kRoot && rule.kind != RuleKind::kEntry) return false;
]] TO [[]]
       SAYS "In code without information, any word after a call is taken for the caller.")
mutant(zeros_are_a_root FILE src/unwind/step.h TEST unwind_dwarf_test
       FROM [[IsZeroCaller(at) && !may_be_data]] TO [[IsZeroCaller(at)]]
       SAYS "A stack that was lost among data is reported as complete.")
mutant(new_thread_is_damaged FILE src/unwind/step.h TEST unwind_test CASES "[step]"
       FROM [[if (stepped && may_be_new && at.pc == 0)]] TO [[if (false)]]
       SAYS "The first sample of a thread, in clone3, has a damaged stack.")
mutant(signal_frame_of_musl_is_unknown FILE src/unwind/dwarf/cfi/code_evidence.cc TEST unwind_dwarf_test
       FROM [[After(bytes, offset + 1, kSignalReturn) != 0 || ]] TO [[]]
       SAYS "Stacks in signal handlers of programs that are linked with musl end at the handler.")
mutant(fork_meets_the_linkers_lock FILE src/unwind/dwarf/live/loaded_modules.cc TEST unwind_dwarf_test CASES "[fork]"
       FROM [[  Looking looking{wanted, max_bytes};
  const sys::ForkBlocker fork_blocker;
]]
       TO [[  Looking looking{wanted, max_bytes};
]]
       SAYS "A child that was forked beside live stacks waits for ever in dl_iterate_phdr.")
mutant(guesses_pass_over_roots FILE src/unwind/dwarf/sampled/walker.cc TEST unwind_dwarf_test CASES "a frame pointer that leads*"
       FROM [[      if (!Machine::kLinkRegister && !rules_.KnownAfterCall(walk.generation, caller).value_or(false)) break;
]]
       TO [[]]
       SAYS "Stacks of musl's programs go on past their root.")
mutant(a_roots_word_goes_before_frame_pointers FILE src/unwind/dwarf/cfi/stack_walk.h TEST unwind_dwarf_test CASES "a frame pointer that leads*"
       FROM [[!LeadsToCall(stack, code, at) &&]] TO [[]]
       SAYS "A word that an earlier call has left ends a stack in the middle.")
mutant(unknown_code_has_no_calls FILE src/unwind/dwarf/sampled/process_rules.cc TEST unwind_dwarf_test CASES "a frame pointer that leads*"
       FROM [[caller.module->is_unknown() ||]] TO [[]]
       SAYS "The same for the callers that a JIT compiler has made.")
mutant(code_of_lost_files_has_no_calls FILE src/unwind/dwarf/sampled/code_module.h TEST unwind_dwarf_test CASES "a frame pointer that leads*"
       FROM [[may_be_made_ || (is_file_ && !file_.ok())]] TO [[may_be_made_]]
       SAYS "The same where a file can't be read, and 11 times the time a stack.")
mutant(cached_guesses_are_not_counted FILE src/unwind/dwarf/sampled/walker.cc TEST unwind_dwarf_test CASES "a walk through generated code*"
       FROM [[guesses += guess;]] TO [[]]
       SAYS "Unverified frames are said to be verified.")
mutant(frozen_step_forgets_where_fp_is FILE src/unwind/dwarf/live/frozen_builder.h TEST unwind_dwarf_test CASES "changes of rule may be near*,what has no number*,pcs of the C*"
       FROM [[bool is_relative() const { return (before ^ after) >> 32 == 0; }]] TO [[bool is_relative() const { return true; }]]
       SAYS "A live stack restores the frame pointer by the rule of earlier code.")
mutant(frozen_rule_after_a_short_delta FILE src/unwind/dwarf/live/frozen_builder.cc TEST unwind_dwarf_test CASES "changes of rule may be near*,what has no number*,pcs of the C*"
       FROM [[rule << (8 + 8 * delta_bytes)]] TO [[rule << 16]]
       SAYS "Where rules change after much code, a live stack steps by another rule.")
mutant(frozen_catch_all_is_the_rule FILE src/unwind/dwarf/live/frozen_builder.cc TEST unwind_dwarf_test CASES "a step after a rule*"
       FROM [[    rows_[row].rule = kCatchAll;]] TO [[    ++rows_[row].begin;
    --rows_[row].begin;]]
       SAYS "In a huge module, a live stack steps by the row of another function.")
mutant(index_ends_before_the_last_line FILE src/unwind/dwarf/live/frozen_table.cc TEST unwind_dwarf_test CASES "changes of rule may be near*"
       FROM [[index_[bucket + 1] + size_t{1}]] TO [[index_[bucket + 1] + size_t{0}]]
       SAYS "A live stack takes the rule of earlier code.")
mutant(index_names_the_next_line FILE src/unwind/dwarf/live/frozen_table.cc TEST unwind_dwarf_test CASES "changes of rule may be near*"
       FROM [[index_.push_back(line == 0 ? 0 : line - 1);]] TO [[index_.push_back(line);]]
       SAYS "A live stack takes the rule of later code, or none.")
