# Mutants of src/sample: see run.cmake.
mutant(cost_at_the_budget FILE src/sample/overhead_controller.cc TEST sample_test CASES "[overhead_controller]"
       FROM [[if (cost > budget_) return Down]] TO [[if (cost > 2 * budget_) return Down]]
       SAYS "A sampler costs twice its budget.")
mutant(loss_is_forgiven FILE src/sample/overhead_controller.cc TEST sample_test CASES "[overhead_controller]"
       FROM [[lossy_ = window.lost > 0 ? lossy_ + 1 : 0;]] TO [[lossy_ = window.lost > 0 ? lossy_ : 0;]]
       SAYS "A sampler goes on losing samples for ever.")
mutant(climbs_without_room FILE src/sample/overhead_controller.cc TEST sample_test CASES "[overhead_controller]"
       FROM [[window.lost == 0 && cost * kHeadroom < budget_;]] TO [[window.lost == 0 && cost < budget_;]]
       SAYS "The rate goes up and down all the time.")
mutant(refused_step_is_believed FILE src/sample/overhead_controller.cc TEST sample_test CASES "[overhead_controller]"
       FROM [[    now_.slower = before;
]]
       TO [[]]
       SAYS "The sampler reports a rate that the kernel refused.")
mutant(backoff_never_grows FILE src/sample/overhead_controller.cc TEST sample_test CASES "[overhead_controller]"
       FROM [[std::min(2 * backoff_, kMaxBackoff);]] TO [[std::min(1 * backoff_, kMaxBackoff);]]
       SAYS "A rate that is too high is tried again and again.")
mutant(twins_both_count FILE src/sample/duplicate_filter.cc TEST sample_test CASES "[duplicate_filter]"
       FROM [[  if (twin) {]] TO [[  if (false) {]]
       SAYS "While events are replaced, an occurrence that both sets have sampled counts twice, or not at all.")
mutant(time_decides_between_twins FILE src/sample/duplicate_filter.cc TEST sample_test CASES "[duplicate_filter]"
       FROM [[if (!writers_.SamplesEachInOverlap(writer)) return]] TO [[return]]
       SAYS "A sample that only one event took, as it was enabled or disabled during an occurrence, is dropped.")
mutant(stand_in_owns_foreign_samples FILE src/sample/duplicate_filter.cc TEST sample_test CASES "[duplicate_filter]"
       FROM [[(foreign || Counts(sample, writer))]] TO [[Counts(sample, writer)]]
       SAYS "While duplicates are expected, samples that another sampler's event was served for are dropped.")
mutant(pause_is_a_loss FILE src/sample/loss_accounting.cc TEST sample_test CASES "[pause]"
       FROM [[!of_side_band && !of_pause) accounting_.told_lost]] TO [[!of_side_band) accounting_.told_lost]]
       SAYS "A sampler with a budget that is paused again and again takes ever fewer samples.")
mutant(full_ring_is_a_pause FILE src/sample/loss_accounting.cc TEST sample_test CASES "[accounting]"
       FROM [[return any && !full;]] TO [[return any;]]
       SAYS "Where LOST records alone tell of losses, those of a full ring before a pause count as paused.")
mutant(replaced_id_forgotten_early FILE src/sample/writer_index.cc TEST sample_test CASES "[writer_index]"
       FROM [[old.until_ns < drained_ns;]] TO [[old.until_ns <= drained_ns;]]
       SAYS "Samples that an event wrote just before it was replaced are unattributed.")
mutant(missed_at_each_drain FILE src/sample/thread_tracker.cc TEST sample_test CASES "[thread_tracker]"
       FROM [[!absl::IsNotFound(status) && !Contains(refused_, tid)]] TO [[!absl::IsNotFound(status)]]
       SAYS "A thread that gets no ring is counted as missed again at each drain.")
mutant(unread_rings_closed FILE src/sample/thread_tracker.cc TEST sample_test CASES "[thread_tracker]"
       FROM [[if (is_read(tid)) {]] TO [[if (is_read(tid) || true) {]]
       SAYS "What an ended thread wrote to overwriting rings is lost, if two snapshots follow each other.")
mutant(signal_of_an_ended_event FILE src/sample/live_stack_reader.cc TEST sample_test CASES "[descriptor]"
       FROM [[stacks.stale -= std::min({excess,]] TO [[stacks.stale -= std::min({0 * excess,]]
       SAYS "Before Linux 5.13, a stack is accounted for that no sample has.")
mutant(other_processes_are_not_told FILE src/sample/synthesis.cc TEST sample_test CASES "[synthesis]"
       FROM [[return names.ok() ? proc::ParseTaskNames(*names) :]] TO [[return names.ok() && false ? proc::ParseTaskNames(*names) :]]
       SAYS "On whole CPUs no process that existed at the start has names.")
mutant(late_processes_are_dropped FILE src/sample/synthesis.cc TEST sample_test CASES "[synthesis]"
       FROM [[ReadLate(pids_[next_pid_++]);]] TO [[++next_pid_;]]
       SAYS "On a machine with many processes, those that Start had no time for have no names.")
mutant(first_ended_thread_ends_all FILE src/sample/ring_set.cc TEST sample_test CASES "[target_end]"
       FROM [[if (!ring_event.hung_up) return &ring_event;]] TO [[if (ring_event.hung_up) return nullptr;]]
       SAYS "A target whose threads live on is told as ended.")
mutant(counts_of_ended_threads FILE src/sample/loss_accounting.cc TEST sample_test CASES "[counts]"
       FROM [[if (closed.counted != 0 || closed.counted_is_lower_bound) sums]] TO [[if (closed.counted_is_lower_bound) sums]]
       SAYS "Counts by thread lack the threads that have ended, and do not sum to the total.")
mutant(chosen_rings_are_changed FILE src/sample/sampler_impl.cc TEST sample_test CASES "[sampler_open]"
       FROM [[if (options.rings != Rings::kAuto || is_cpu) return]] TO [[if (is_cpu) return]]
       SAYS "Who asks for rings of CPUs gets rings of threads, without the children of a process.")
mutant(new_groups_have_no_path FILE src/sample/plan.cc TEST sample_test CASES "[cgroups]"
       FROM [[request.attr.cgroup = options_.side_band && ]] TO [[request.attr.cgroup = !options_.side_band && ]]
       SAYS "Cgroups that are created after the start have numbers only.")
mutant(users_chain_beside_dumps FILE src/sample/plan_stack.cc TEST sample_test CASES "[kernel_chain]"
       FROM [[level.stack == 0 || options_.stack.kind != Kind::kFramePointers;]] TO [[level.stack == 0;]]
       SAYS "Dumped and live stacks also have the user's frames that the kernel found by frame pointers.")
mutant(state_comes_before_what_was_there FILE src/sample/sampler_drain.cc TEST sample_test CASES "the state at a start comes after*"
       FROM [[if (streams && !DrainUntil(before_ns, visit, max_records - given_)) return false;]] TO [[(void)before_ns;]]
       SAYS "What was sampled before a second start has the names of what is mapped by then.")
mutant(children_at_start_are_nameless FILE src/sample/synthesis.cc TEST sample_test CASES "[synthesis]"
       FROM [[if (!plan.inherits()) return pids;]] TO [[return pids;]]
       SAYS "Children that a process has forked between Open and Start, or between Stop and Start, have no names.")
mutant(program_of_later_names_before FILE src/sample/synthesis.cc TEST sample_test CASES "[synthesis]"
       FROM [[if (!maps || proc::ReadStat(pid) == before)]] TO [[if (!maps || true)]]
       SAYS "What a process did before an exec, just when it was read, has the names of the new program.")
mutant(end_of_a_target_wakes_nobody FILE src/sample/sampler_rings.cc TEST sample_test CASES "[target_end]"
       FROM [[WatchEnd(living == nullptr ? -1 : living->fd.get());]] TO [[]]
       SAYS "Who waits for records of a process that has ended waits for ever.")
mutant(end_is_looked_for_twice FILE src/sample/sampler_rings.cc TEST sample_test CASES "[target_end]"
       FROM [[now_ns - end_checked_ns_ < kEndCheckNs) return;]] TO [[end_checked_ns_ <= now_ns) return;]]
       SAYS "A target whose last thread was preempted as it ended never ends.")
mutant(last_descriptors_are_taken FILE src/sample/sampler_impl.cc TEST sample_test CASES "[sampler_open]"
       FROM [[const SpareDescriptors spare;]] TO [[]]
       SAYS "A sampler takes the last descriptors for rings of CPUs, and the session that opened it can't start.")
mutant(kernel_chains_cost_nothing FILE src/sample/sampler_drain.cc TEST sample_test CASES "[kernel_chain]"
       FROM [[accounting_.kernel_cpu_ns += Plan::kKernelChainNs;]] TO [[{}]]
       SAYS "Samples in the kernel with dumped stacks cost more than a sampler's budget knows of.")
mutant(stuck_thread_is_helped_late FILE src/sample/progress_watch.h TEST sample_test CASES "[progress]"
       FROM [[if (last.stale < kStaleSignals)]] TO [[if (last.stale <= kStaleSignals)]]
       SAYS "A count is off by one.")
mutant(stuck_thread_is_never_noticed FILE src/sample/live_stack_handler.cc TEST sample_test CASES "[progress]"
       FROM [[  switches_.SwitchOff(number);
]]
       TO [[]]
       SAYS "A thread whose samples cause the next sample is in the handler for ever.")
mutant(slow_loop_is_stuck FILE src/sample/progress_watch.h TEST sample_test CASES "[progress]"
       FROM [[ || now_ns - last.time_ns > kMaxGapNs) last.stale]] TO [[) last.stale]]
       SAYS "A loop that unblocks SIGTRAP at one place loses its rate.")
mutant(busy_loop_is_stuck FILE src/sample/progress_watch.h TEST sample_test CASES "[progress]"
       FROM [[last.stale += stale ? 1 : 0;]] TO [[last.stale += 1;]]
       SAYS "A loop of one instruction loses its rate.")
mutant(rate_climbs_to_no_progress FILE src/sample/overhead_controller.h TEST sample_test CASES "[overhead_controller]"
       FROM [[return {full_.stack, min_slower_};]] TO [[return {full_.stack, 1};]]
       SAYS "A budget with headroom makes steps up that lead nowhere.")
mutant(closed_descriptor_is_switched_off FILE src/sample/signal_switches.cc TEST sample_test CASES "[switches]"
       FROM [[__atomic_store_n(&WordAt(at), 0, __ATOMIC_SEQ_CST);]] TO [[]]
       SAYS "The event that gets the number of a closed descriptor is disabled.")
mutant(switched_off_until_the_next_decision FILE src/sample/sampler_impl.cc TEST sample_test CASES "[progress]"
       FROM [[  decision.from_ns = since_ns;
]]
       TO [[]]
       SAYS "The interval without samples is told too short.")
mutant(switched_off_and_stopped FILE src/sample/sampler_impl.cc TEST sample_test CASES "[progress]"
       FROM [[if (live_.SwitchedOffSince() != 0) {]] TO [[if (false) {]]
       SAYS "A sampler that was stopped before it was drained does not say that its event was off.")
mutant(signals_cost_what_they_cost_elsewhere FILE src/sample/live_stack_reader.cc TEST sample_test CASES "[progress]"
       FROM [[plan.SetSignalCost(signal_ns);]] TO [[(void)signal_ns;]]
       SAYS "The budget of a sampler on a slow machine knows a twentieth of its cost.")
mutant(snapshot_counts_what_rings_hold FILE src/sample/loss_accounting.cc TEST sample_test CASES "[snapshot]"
       FROM [[  if (!without_rings) return;]] TO [[  if (without_rings || !without_rings) return;]]
       SAYS "A snapshot counts events whose samples the next one has.")
mutant(mappings_have_no_build_ids FILE src/sample/plan.cc TEST sample_test CASES "[side_band]"
       FROM [[request.attr.build_id = options_.side_band;]] TO [[request.attr.build_id = 0;]]
       SAYS "Mappings come without build-ids, so that a replaced file can't be told.")
mutant(build_id_of_any_device FILE src/sample/synthesis.cc TEST sample_test CASES "[side_band]"
       FROM [[proc::ReadBuildId(proc::ModuleId::Of(map, static_cast<pid_t>(pid)), "/proc")]]
       TO [[proc::ReadBuildId({.path = std::string(map.path), .inode = map.inode, .pid = static_cast<pid_t>(pid)}, "/proc")]]
       SAYS "A mapping has the build-id of a container's other file at its path, if both have the same inode.")
mutant(foreign_time_is_believed FILE src/sample/sampler_drain.cc TEST sample_test CASES "a sample with another clock*"
       FROM [[foreign = foreign || !has_own_time;]] TO [[]]
       SAYS "Beside a perf record of one event, samples have its clock's time, and nothing says so.")
mutant(older_times_are_own FILE src/sample/ring_drain.h TEST sample_test CASES "a sample with another clock*"
       FROM [[return time && *time >= earliest_ns_ && *time <= latest_ns_]] TO [[return time && *time <= latest_ns_]]
       SAYS "A sampler by CLOCK_REALTIME has samples of 1970, from another one's clock, and nothing says so.")
mutant(undated_sample_has_the_weight_of_before FILE src/sample/sampler_drain.cc TEST sample_test
       CASES "a sample by another clock has*" FROM [[const bool is_dated = has_own_time && (]] TO [[const bool is_dated = (]]
       SAYS "Beside a perf record of one event, samples after a change of the rate represent more than was counted.")
mutant(pages_of_rings_are_not_prepared FILE src/sample/stack_rings.cc TEST sample_test CASES "a thread has no page faults*"
       FROM [[LoadShared(ring.page.data_head) + kAhead]] TO [[LoadShared(ring.page.data_head)]]
       SAYS "Sampled threads pay for page faults, and counters count them.")
mutant(preparing_a_page_undoes_a_write FILE src/sample/stack_rings.cc TEST sample_test CASES "no word is lost*"
       FROM [[__atomic_compare_exchange_n(word, &seen, seen, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);]]
       TO [[__atomic_store_n(word, seen, __ATOMIC_RELAXED);]]
       SAYS "A stack has a word of an older record.")
mutant(prepared_pages_are_only_read FILE src/sample/stack_rings.cc TEST sample_test CASES "a thread has no page faults*"
       FROM [[__atomic_compare_exchange_n(word, &seen, seen, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);]] TO [[(void)seen;]]
       SAYS "Sampled threads pay for page faults all the same.")
