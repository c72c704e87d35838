# Mutants of src/sys: see run.cmake.
mutant(child_keeps_offsets FILE src/sys/clock.cc TEST session_test CASES "in a time namespace*"
       FROM [[own)->known.store(false,]] TO [[own)->known.store(true,]]
       SAYS "A process that enters a time namespace by a fork has the times of its parent.")
mutant(offset_is_added FILE src/sys/clock.h TEST session_test CASES "in a time namespace*"
       FROM [[return OwnClockNs(clock) - ClockOffsetNs(clock);]] TO [[return OwnClockNs(clock) + ClockOffsetNs(clock);]]
       SAYS "In a time namespace, threads run for days.")
mutant(link_is_followed FILE src/sys/owned_tail.cc TEST proc_test
       FROM [[O_RDONLY | O_NONBLOCK | O_NOFOLLOW]] TO [[O_RDONLY | O_NONBLOCK]]
       SAYS "Any user can make a process read a file of its choice as a list of JIT functions.")
mutant(owner_is_not_checked FILE src/sys/owned_tail.cc TEST proc_test
       FROM [[if (std::find(owners.begin(), owners.end(), info.st_uid) == owners.end()) {]] TO [[if (owners.empty()) {]]
       SAYS "Any user can name the functions of a process.")
mutant(pipe_is_waited_for FILE src/sys/map_file.cc TEST sys_test
       FROM [[O_RDONLY | O_NONBLOCK]] TO [[O_RDONLY]]
       SAYS "A pipe in the place of a module hangs the profiler.")
mutant(changed_is_modified FILE src/sys/map_file.cc TEST sys_test
       FROM [[.changed_ns = NsOf(info.st_ctim)]] TO [[.changed_ns = NsOf(info.st_mtim)]]
       SAYS "A file whose time was set back is believed to be the one that ran.")
mutant(files_of_others_are_mapped FILE src/sys/map_file.cc TEST sys_test
       FROM [[  if (!IsOurs(info)) return ReadWhole(]] TO [[  if (!IsOurs(info) && info.st_size < 0) return ReadWhole(]]
       SAYS "A user ends root's profiler by truncating a file that it reads: SIGBUS.")
mutant(deleted_is_never_told FILE src/sys/map_file.cc TEST sys_test
       FROM [[.deleted = info.st_nlink == 0}]] TO [[.deleted = info.st_nlink == 1}]]
       SAYS "A file that is there is taken for deleted.")
mutant(edit_without_lock FILE src/sys/edit_file.cc TEST sys_test
       FROM [[whole.l_type = F_WRLCK;]] TO [[whole.l_type = F_UNLCK;]]
       SAYS "Two tests that write the baseline at once lose one of the entries.")
mutant(lock_of_the_old_file FILE src/sys/edit_file.cc TEST sys_test
       FROM [[if (locked.st_dev == named.st_dev && locked.st_ino == named.st_ino)]] TO [[if (locked.st_dev == named.st_dev)]]
       SAYS "A writer that waited for the lock overwrites what the one before it wrote.")
mutant(interrupted_write_fails FILE src/sys/new_file.cc TEST sys_test
       FROM [[RetryInterrupted([&] { return kernel().write(fd, bytes.data(), bytes.size()); });]] TO [[kernel().write(fd, bytes.data(), bytes.size());]]
       SAYS "A signal during the write of the baseline makes it fail.")
mutant(short_write_is_whole FILE src/sys/new_file.cc TEST sys_test
       FROM [[bytes.remove_prefix(static_cast<size_t>(wrote));]] TO [[bytes = {};]]
       SAYS "On a full disk a cut baseline replaces the whole one.")
mutant(link_is_replaced FILE src/sys/edit_file.cc TEST sys_test
       FROM [[return size <= 0 || target[0] != '/' ? path]] TO [[return size >= 0 || target[0] != '/' ? path]]
       SAYS "A baseline that is a symbolic link becomes a file of its own.")
mutant(aside_is_left FILE src/sys/new_file.cc TEST sys_test
       FROM [[if (!aside_.empty()) kernel().unlink]] TO [[if (aside_.empty()) kernel().unlink]]
       SAYS "A failed write leaves a file.")
mutant(permissions_of_the_umask FILE src/sys/edit_file.cc TEST sys_test
       FROM [[file->SetMode(mode & 07777)]] TO [[file->SetMode(mode & 0)]]
       SAYS "The baseline is unreadable after an edit.")
mutant(interrupted_read_fails FILE src/sys/files.cc TEST sys_test
       FROM [[RetryInterrupted([&] { return kernel().read(fd.get(), text.data() + before, kRoom); });]] TO [[kernel().read(fd.get(), text.data() + before, kRoom);]]
       SAYS "A signal during a read of /proc or sysfs makes the open fail.")
mutant(first_read_is_all FILE src/sys/files.cc TEST sys_test
       FROM [[if (got == 0) return text;]] TO [[if (got < 4096) return text;]]
       SAYS "A file of /proc is cut after its first short read: later mappings have no names.")
mutant(limit_is_one_read FILE src/sys/files.cc TEST sys_test
       FROM [[if (text.size() > most)]] TO [[if (static_cast<size_t>(got) > most)]]
       SAYS "A file without an end fills the memory.")
mutant(capability_of_another_bit FILE src/sys/rights.cc TEST sys_test
       FROM [[constexpr unsigned kCapPerfmon = 38;]] TO [[constexpr unsigned kCapPerfmon = 39;]]
       SAYS "Errors say that a process with CAP_PERFMON has none.")
mutant(admin_is_no_perfmon FILE src/sys/rights.cc TEST sys_test
       FROM [[is_admin = (set >> kCapSysAdmin & 1) != 0;]] TO [[is_admin = (set >> (kCapSysAdmin + 1) & 1) != 0;]]
       SAYS "A process with CAP_SYS_ADMIN is told that it may not count the kernel.")
mutant(permitted_is_effective FILE src/sys/rights.cc TEST sys_test
       FROM [[return halves[0].effective | uint64_t{halves[1].effective} << 32;]] TO [[return halves[0].permitted | uint64_t{halves[1].permitted} << 32;]]
       SAYS "A right that a process has not raised is taken for one that it has.")
mutant(forbidden_rings_are_permissions FILE src/sys/perf_error.cc TEST sys_test
       FROM [[{PerfCall::kMapRing, EPERM, Code::kResourceExhausted,]] TO [[{PerfCall::kMapRing, EPERM, Code::kPermissionDenied,]]
       SAYS "Locked memory that is used up is reported as a missing right.")
mutant(errno_of_the_wrong_place FILE src/sys/perf_error.cc TEST sys_test
       FROM [[text.substr(said + kSaid.size());]] TO [[text.substr(said + kSaid.size() + 1);]]
       SAYS "A program that decides by errno decides wrongly.")
mutant(involuntary_switches_left_out FILE src/sys/switches.cc TEST sys_test
       FROM [[usage.ru_nvcsw + usage.ru_nivcsw]] TO [[usage.ru_nvcsw]]
       SAYS "Preemptions are not counted where perf is forbidden.")
mutant(closed_waiter_spins FILE src/sys/waiter.cc TEST sys_test CASES "[waiter]"
       FROM [[if (ready < 0 && errno != EINTR) Sleep(timeout_ms);]] TO [[if (ready < 0 && errno == EINTR) Sleep(timeout_ms);]]
       SAYS "A program that closes all descriptors, as daemons do, loses a CPU to the session's thread.")
mutant(futex_of_the_wrong_clock FILE src/sys/call_timeout.cc TEST sys_test CASES "[call_timeout]"
       FROM [[(arguments[1] & FUTEX_CLOCK_REALTIME) != 0 || operation == FUTEX_LOCK_PI;]]
       TO [[(arguments[1] & FUTEX_CLOCK_REALTIME) != 0;]]
       SAYS "A lock's timeout is decades away.")
mutant(what_is_no_file_is_edited FILE src/sys/regular_file.cc TEST sys_test CASES "a device is*"
       FROM [[if (S_ISREG(about.st_mode)) return absl::OkStatus();]] TO [[if (!S_ISDIR(about.st_mode)) return absl::OkStatus();]]
       SAYS "A device is replaced by a file.")
mutant(children_take_user_time FILE src/sys/process.cc TEST open_test CASES "[child]"
       FROM [[Microseconds(usage.ru_utime) + Microseconds(usage.ru_stime)]] TO [[Microseconds(usage.ru_utime)]]
       SAYS "A program that works in the kernel has taken no CPU time.")
mutant(calls_are_cancellation_points FILE src/sys/uncancelled.h TEST session_test CASES "[cancel]"
       FROM [[PTHREAD_CANCEL_DISABLE, &before_]] TO [[PTHREAD_CANCEL_ENABLE, &before_]]
       SAYS "A thread that is cancelled, and then destroys a set, ends the process.")
mutant(rate_is_raised_in_vain FILE src/sys/max_sample_rate.cc TEST sys_test CASES "[max_sample_rate]"
       FROM [[if (percent == 0 || percent == 100)]] TO [[if (percent == 0 && percent == 100)]]
       SAYS "A remedy that the kernel refuses is advised.")
mutant(lock_of_a_session_is_bare FILE src/sys/locks/interpose.cc TEST locks_test CASES "[locks]~[.heavy]"
       FROM [[g_lock_target.store(recorded ? LockRecorded : g_mutex_lock(),]] TO [[g_lock_target.store(g_mutex_lock(),]]
       SAYS "Waits for mutexes have no records.")
mutant(unlock_of_a_session_is_bare FILE src/sys/locks/interpose.cc TEST locks_test CASES "[locks]~[.heavy]"
       FROM [[g_unlock_target.store(recorded ? UnlockRecorded : g_mutex_unlock(),]] TO [[g_unlock_target.store(g_mutex_unlock(),]]
       SAYS "A mutex that a thread waited for has no releaser.")
mutant(wait_goes_on_in_the_next_recording FILE src/sys/locks/recorder.cc TEST locks_test CASES "[locks]~[.heavy]"
       FROM [[if (recording_ != g_recording.load(std::memory_order_relaxed)) return;]] TO [[if (recording_ == 0) return;]]
       SAYS "A record lacks the releases between two sessions, and names one holder where there were two.")
