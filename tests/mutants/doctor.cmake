# Mutants of src/doctor: see run.cmake.
mutant(kernels_part_is_tried_without_it FILE src/doctor/counting_probes.cc TEST doctor_test CASES "[capabilities]"
       FROM [[SoftwareAttr(sys::kSwContextSwitches, false)]] TO [[SoftwareAttr(sys::kSwContextSwitches)]]
       SAYS "Ordinary users read that they may count the kernel's part, which they may not.")
mutant(register_that_stands_still FILE src/doctor/counting_probes.cc TEST doctor_test CASES "[capabilities]"
       FROM [[after.value <= before.value) {]] TO [[after.value < before.value) {]]
       SAYS "A register that never moves is reported as a way to read counters.")
mutant(own_processes_are_anothers FILE src/doctor/counting_probes.cc TEST doctor_test CASES "[capabilities]"
       FROM [[*owner != context.rights.euid]] TO [[*owner == context.rights.euid]]
       SAYS "Ordinary users read that they may count the tasks of others, which they may not.")
mutant(no_perf_is_an_old_kernel FILE src/doctor/ring_probes.cc TEST doctor_test CASES "[capabilities]"
       FROM [[ && sys::ErrnoOf(status) != ENOSYS;]] TO [[;]]
       SAYS "In a sandbox without perf, the report advises to install a newer kernel.")
mutant(rings_are_not_held FILE src/doctor/ring_probes.cc TEST doctor_test CASES "[capabilities]"
       FROM [[      rings.push_back(*std::move(ring));
]]
       TO [[]]
       SAYS "An ordinary user with half a megabyte of ring memory reads that there are more than 16.")
mutant(open_descriptors_are_left FILE src/doctor/ring_probes.cc TEST doctor_test CASES "[capabilities]"
       FROM [[if (left >= kFewest)]] TO [[if (limit.rlim_cur >= kFewest)]]
       SAYS "The report says that all is well although nearly all descriptors are open.")
mutant(tracepoints_of_calls_only FILE src/doctor/address_probes.cc TEST doctor_test CASES "[capabilities]"
       FROM [[if (any.usability == Usability::kCounts) {]] TO [[if (any.usability == Usability::kOpens) {]]
       SAYS "Root reads that of all tracepoints only those of system calls can be counted.")
mutant(breakpoint_example_watches_reads FILE src/doctor/examples.cc TEST doctor_test CASES "[list]"
       FROM [[mem:0x%x/4:w]] TO [[mem:0x%x/4:r]]
       SAYS "Breakpoints are reported as missing on x86, which cannot watch reads alone.")
mutant(segment_begins_where_its_file_does FILE src/doctor/own_code.cc TEST doctor_test CASES "[own_code]"
       FROM [[search.address - start + header.p_offset}]] TO [[search.address - start}]]
       SAYS "The uprobe that the list gives as an example is set in the middle of other data, and never counts.")
mutant(misses_that_need_not_come FILE src/doctor/expectation.cc TEST doctor_test CASES "[list]"
       FROM [[    {"dTLB-loads", Work::kReads},]]
       TO [[    {"dTLB-loads", Work::kReads},
    {"LLC-load-misses", Work::kReads},]]
       SAYS "A machine whose last cache holds all that is read is said to count no misses of it.")
mutant(sleep_is_tried_once FILE src/doctor/workload.cc TEST doctor_test CASES "[list]"
       FROM [[  sys::SwitchAway();]]
       TO [[  const timespec nap{0, 1};
  sys::kernel().nanosleep(&nap);]]
       SAYS "On a busy virtual machine, context-switches is sometimes said to count nothing.")
mutant(event_at_0_counts FILE src/doctor/try_event.cc TEST doctor_test CASES "[list]"
       FROM [[count.validity.counted() && count.value > 0) return verdict;]]
       TO [[count.validity.counted()) return verdict;]]
       SAYS "Hardware events that a virtual machine opens and never counts are said to count.")
mutant(count_runs_backwards FILE src/doctor/try_event.cc TEST doctor_test CASES "[list]"
       FROM [[set->Difference(begin, end, 0)]] TO [[set->Difference(end, begin, 0)]]
       SAYS "The list shows counts of 18 quintillion.")
mutant(event_that_waits_does_not_exist FILE src/doctor/try_event.cc TEST doctor_test CASES "[list]"
       FROM [[verdict.usable = NeverScheduled(event);]] TO [[verdict.usable = Silent(event, raised_by);]]
       SAYS "A user whose counters another profiler holds reads that the machine does not count.")
mutant(whole_cpus_are_one_thread FILE src/doctor/try_open.cc TEST doctor_test CASES "[capabilities]"
       FROM [[  request.pid = task_cpu.pid;
]]
       TO [[]]
       SAYS "Users who may count the kernel's part of their threads read that they may count whole CPUs.")
mutant(remedy_leaves_the_kernel_out FILE src/doctor/try_open.cc TEST doctor_test CASES "[capabilities]"
       FROM [[request.kernel_side = true;]] TO [[request.kernel_side = false;]]
       SAYS "Who wants to count the kernel's part is advised to count user space only.")
mutant(probe_is_content_with_less FILE src/doctor/try_open.cc TEST doctor_test CASES "[capabilities]"
       FROM [[request.may_restrict_to_user = false;]] TO [[request.may_restrict_to_user = true;]]
       SAYS "Each user reads that the kernel's part can be counted, because user space can.")
mutant(limit_is_a_missing_pmu FILE src/doctor/capabilities.cc TEST doctor_test CASES "[capabilities]"
       FROM [[ || absl::IsResourceExhausted(finding.status)]] TO [[]]
       SAYS "A process without descriptors is advised to enable the PMU in the hypervisor.")
mutant(filter_is_a_missing_pmu FILE src/doctor/capabilities.cc TEST doctor_test CASES "[capabilities]"
       FROM [[in_the_way ? sys::RemedyOf(finding.status) : "";]] TO [["";]]
       SAYS "In a container that forbids perf, the user is advised to enable the PMU in the hypervisor.")
mutant(unit_is_the_group FILE src/doctor/list_events.cc TEST doctor_test CASES "[list]"
       FROM [[std::string(known.unit), std::string(known.group),]]
       TO [[std::string(known.group), std::string(known.unit),]]
       SAYS "Counts of energy are in 'power' instead of Joules.")
mutant(kernels_tracepoints_for_all FILE src/doctor/list_events.cc TEST doctor_test CASES "[list]"
       FROM [[(event->kernel_side && !rights.may_count_kernel())]]
       TO [[(!event->kernel_side && !rights.may_count_kernel())]]
       SAYS "Ordinary users read that sched:sched_switch is usable, and are refused.")
mutant(yes_is_no FILE src/doctor/format_capabilities.cc TEST doctor_test CASES "[capabilities]"
       FROM [[{"yes", "no", "?"}]] TO [[{"no", "yes", "?"}]]
       SAYS "The report says yes to what is missing, and no to what is there.")
