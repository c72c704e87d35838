# Mutants of src/open: see run.cmake.
mutant(held_child_is_left FILE src/open/child.cc TEST open_test CASES "[child]"
       FROM [[if (phase == Phase::kHeld) sys::KillAndReap(held.pid);]] TO [[if (phase == Phase::kEnded) sys::KillAndReap(held.pid);]]
       SAYS "A child that is never started stays for ever.")
mutant(child_counts_before_exec FILE src/open/child.cc TEST open_test CASES "[child]"
       FROM [[target.enable_on_exec = true;]] TO [[target.enable_on_exec = false;]]
       SAYS "A child's counts contain the fork and the wait before its program.")
mutant(code_is_signal FILE src/open/child.cc TEST open_test CASES "[child]"
       FROM [[{.code = end->code, .signal = end->signal, .cpu_ns]] TO [[{.code = end->signal, .signal = end->code, .cpu_ns]]
       SAYS "A child that fails is reported as killed.")
mutant(other_cpus_are_watched FILE src/open/task_cpu.cc TEST open_test
       FROM [[const bool allowed = only_cpus.empty() || ]] TO [[const bool allowed = !only_cpus.empty() || ]]
       SAYS "Events of one kind of core are opened on the other: a system-wide count fails.")
mutant(one_cpu_is_all FILE src/open/task_cpu.cc TEST open_test
       FROM [[target.kind == Target::Kind::kSystem || cpu == target.id;]] TO [[target.kind == Target::Kind::kSystem || cpu >= target.id;]]
       SAYS "The count of one CPU contains that of the CPUs after it.")
mutant(ring_without_its_page FILE src/open/live_ring.cc TEST open_test
       FROM [[page_size * (1 + size_t{data_pages})]] TO [[page_size * (size_t{data_pages})]]
       SAYS "No ring can be mapped.")
mutant(experiment_counts FILE src/open/variation.cc TEST open_test
       FROM [[if (errno != EINTR) return errno;]] TO [[return errno;]]
       SURVIVES "not killed yet: takes a signal within an experiment"
       SAYS "A signal during an experiment makes the error name another cause.")
mutant(kernel_breakpoint_is_users FILE src/open/explain.cc TEST open_test
       FROM [[static_cast<int64_t>(attr.config1) < 0;]] TO [[static_cast<int64_t>(attr.config1) > 0;]]
       SAYS "A refused breakpoint is explained as one of the kernel's.")
mutant(build_ids_are_a_must FILE src/open/open_event.cc TEST open_test CASES "[open_event]"
       FROM [[} else if (error == EINVAL && attr.build_id != 0) {]] TO [[} else if (error == EINVAL && attr.build_id > 1) {]]
       SAYS "On kernels before 5.12 nothing with a side band opens.")
mutant(kernel_breakpoints_take_perfmon FILE src/open/explain.cc TEST open_test CASES "[explain]"
       FROM [[if (IsBreakpointOfKernel(refused_.attr) && !rights_.sys_admin) return]]
       TO [[if (IsBreakpointOfKernel(refused_.attr) && !rights_.perfmon) return]]
       SAYS "With CAP_PERFMON, the refusal of a breakpoint in kernel memory names a sandbox.")
mutant(last_error_is_quoted FILE src/open/explain.cc TEST open_test CASES "[explain]"
       FROM [[const int said = is_denial ? refusal.first_error : refusal.error;]] TO [[const int said = refusal.error;]]
       SAYS "A refusal for want of a right quotes EINVAL, of the retry for user space only.")
mutant(refused_group_is_an_error FILE src/open/live_ring.cc TEST open_test CASES "[live_ring]"
       FROM [[if (absl::IsInvalidArgument(event.status()) && std::exchange(]] TO [[if (absl::IsNotFound(event.status()) && std::exchange(]]
       SAYS "Where the kernel refuses the group, nothing is counted inline.")
