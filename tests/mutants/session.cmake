# Mutants of src/session: see run.cmake.
mutant(drain_never_ends FILE src/session/unwind_backlog.cc TEST session_test CASES "[unwind_backlog]"
       FROM [[const bool is_over = cpu_ns > 2 * kPatienceNs;]] TO [[const bool is_over = false;]]
       SAYS "If records come faster than they are added, a session's thread never lets go of it: Stop waits for ever.")
mutant(unwinds_all_before_reading FILE src/session/unwind_backlog.cc TEST session_test CASES "[unwind_backlog]"
       FROM [[if (waiting_.empty() && (!has_dumps_ || Now() - begun_ns < kSliceNs)) return add(record, false);]]
       TO [[if (waiting_.empty()) return add(record, false);]]
       SAYS "The rings overflow while stacks are unwound.")
mutant(backlog_never_drops FILE src/session/unwind_backlog.cc TEST session_test CASES "[unwind_backlog]"
       FROM [[if (has_dumps_ && (is_late_ || bytes_ > max_bytes_ / 2)) {]] TO [[if (has_dumps_ && is_late_) {]]
       SAYS "Dumps that wait take all of the memory.")
mutant(dropped_dumps_are_not_told FILE src/session/aggregator.cc TEST session_dwarf_test CASES "[dropped_dumps]"
       FROM [[        ++builder_.profile().accounting.dumps_dropped;
]]
       TO [[]]
       SAYS "Samples lack their callers, and nothing says so.")
mutant(follower_counts_from_start FILE src/session/follower_values.cc TEST session_test CASES "[follower_values]"
       FROM [[  entry->second = value;
]]
       TO [[]]
       SAYS "Each sample has all that its follower has counted since the start.")
mutant(pause_is_forgotten FILE src/session/follower_values.cc TEST session_test CASES "[follower_values]"
       FROM [[  last_.clear();
]]
       TO [[]]
       SAYS "What followers count in a pause is attributed to the first sample after it.")
mutant(ended_thread_keeps_values FILE src/session/aggregator.cc TEST session_test CASES "[follower_values]"
       FROM [[  followers_.Forget(*thread);
]]
       TO [[]]
       SURVIVES "not killed yet: takes a thread that gets the index of an ended one, and the same counter's id"
       SAYS "A thread's first sample lacks what an earlier thread had counted.")
mutant(follower_without_stack FILE src/session/stack_matcher.cc TEST session_test CASES "[stack_matcher]"
       FROM [[  while (begin > 0 && pending[begin].sample.samples == 0) --begin;  // followers
]]
       TO [[]]
       SAYS "Only the last follower of a sample has its live stack.")
mutant(woken_while_it_runs FILE src/session/off_cpu.cc TEST session_test CASES "[off_cpu]"
       FROM [[if (state.phase == Phase::kOff || state.phase == Phase::kUnknown) state.waker = std::move(waker);]]
       TO [[state.waker = std::move(waker);]]
       SURVIVES "equal: a change of phase forgets the waker"
       SAYS "A wait is told to have ended by who woke the thread before it began.")
mutant(waker_is_kept FILE src/session/off_cpu.cc TEST session_test CASES "[off_cpu]"
       FROM [[  state.preempted = preempted;
  state.waker.reset();]]
       TO [[  state.preempted = preempted;]]
       SAYS "All waits of a thread were ended by who ended the first one.")
mutant(interrupt_is_a_thread FILE src/session/sched_events.cc TEST session_test CASES "[waking]"
       FROM [[kHardInterrupt | kSoftInterrupt |]] TO [[kHardInterrupt |]]
       SAYS "A packet that came in is told as the work of the thread that it interrupted.")
mutant(woken_thread_is_the_waker FILE src/session/aggregator.cc TEST session_test CASES "a thread that waits for another*"
       FROM [[profile.ThreadName(waker),]] TO [[profile.ThreadName(*woken),]]
       SAYS "Each thread has woken itself.")
mutant(look_of_a_later_span FILE src/session/off_cpu.cc TEST session_test CASES "[off_cpu]"
       FROM [[if (state.look && state.look->at_ns <= now_ns) {]] TO [[if (state.look) {]]
       SAYS "A wait has the stack of a later one.")
mutant(preempted_is_looked_at FILE src/session/off_cpu.cc TEST session_test CASES "[off_cpu]"
       FROM [[if (off && !state.preempted &&]] TO [[if (off &&]]
       SAYS "CPU time is spent on looks at threads that wait for nothing.")
mutant(one_look_a_wait FILE src/session/off_cpu.cc TEST session_test CASES "[off_cpu]"
       FROM [[return now_ns >= state.since_ns + by_then_ns + by_then_ns / 2;]] TO [[return now_ns > UINT64_MAX - by_then_ns;]]
       SAYS "What long waits were for is never known, without wakers.")
mutant(looks_of_two_waits FILE src/session/off_cpu.cc TEST session_test CASES "[off_cpu]"
       FROM [[if (state.look && state.look->times_run != look.times_run) return;]] TO [[]]
       SAYS "A wait whose end is still to come loses its look to the next one.")
mutant(holder_since_ever FILE src/session/off_cpu.cc TEST session_test CASES "[off_cpu]"
       FROM [[if (!state.look || state.look->holder.thread != look.holder.thread)]] TO [[if (!state.look)]]
       SAYS "A lock that was handed on is said to have been the last holder's all the time.")
mutant(snapshot_cuts_waits FILE src/session/aggregator_profile.cc TEST session_test CASES "snapshots do not cut*"
       FROM [[  builder_.profile().samples.resize(samples);
]]
       TO [[]]
       SAYS "A wait during which a profile was made is in the next one twice.")
mutant(disk_that_was_read_before FILE src/session/disk_reads.cc TEST session_test CASES "[disk_reads]"
       FROM [[from_ns < found->second.grew_to_ns && ]] TO [[]]
       SAYS "Any wait after a read from a disk is told as one for the disk.")
mutant(thread_is_a_disk FILE src/session/span_wait.cc TEST session_test CASES "[disk_reads]"
       FROM [[!span.preempted && !by_thread;]] TO [[!span.preempted;]]
       SAYS "A wait that another thread ended is told as one for a disk.")
mutant(early_looks_for_ever FILE src/session/look_pace.h TEST session_test CASES "[disk_reads]"
       FROM [[saved_ns_ >= kNsAnEarlyRound;]] TO [[true;]]
       SAYS "The session's thread looks at a program that always waits briefly four times as often, for ever.")
mutant(records_wait_for_names FILE src/session/impl.cc TEST session_test CASES "what happens while names*"
       FROM [[  backlog_.Keep(sampler_->layout(), [this](UnwindBacklog::Visit visit) { ReadRings(visit); });
]]
       TO [[]]
       SAYS "A snapshot of a busy program loses samples while names are looked up.")
mutant(rings_fill_while_a_file_is_read FILE src/session/aggregator_profile.cc TEST session_dwarf_test
       CASES "samples that come while a name*"
       FROM [[on_named && !locations.empty() ? options_.keeper : nullptr]] TO [[nullptr]]
       SAYS "The first snapshot loses what is sampled while a file's symbols are read.")
mutant(rings_are_read_while_they_are_read FILE src/session/aggregator_profile.cc TEST session_test
       CASES "[ring_keeper]"
       FROM [[on_named && !locations.empty()]] TO [[!locations.empty()]]
       SAYS "Two threads read the rings, if a batch is handed out because memory is full.")
mutant(closed_keeper_keeps FILE src/session/ring_keeper.cc TEST session_test CASES "[ring_keeper]"
       FROM [[    if (!is_open_) continue;
]] TO [[]]
       SAYS "Two threads read the rings at the same time.")
mutant(kept_records_are_dropped FILE src/session/unwind_backlog.cc TEST session_test CASES "what happens while names*"
       FROM [[  add(waiting.record, waiting.dump_dropped);
]]
       TO [[]]
       SAYS "What happened while names were looked up is in no profile.")
mutant(merged_waits_are_none FILE src/session/whole_frames.cc TEST session_test CASES "[whole_frames]"
       FROM [[if (sample.event != off_cpu) continue;]] TO [[if (sample.event == off_cpu) continue;]]
       SAYS "An early frame that waited is told to have run.")
mutant(waiting_for_a_cpu_is_running FILE src/session/running_threads.cc TEST session_test
       CASES "a thread that was woken just before*"
       FROM [[CpuNs(tids[one.index]) > one.cpu_ns;]] TO [[CpuNs(tids[one.index]) >= one.cpu_ns;]]
       SAYS "A thread that slept, and was woken just before the end, is told to have run all the time.")
mutant(library_begins_where_its_file_is_read FILE src/session/lock_names.cc TEST session_test CASES "[lock_records]"
       FROM [[line.path == file.path && (line.file_offset != 0 || line.writable);]] TO [[line.path == file.path;]]
       SAYS "Locks in a library have no names once its file is also mapped to be read.")
mutant(frames_known_by_other_threads FILE src/session/whole_frames.cc TEST session_test CASES "[whole_frames]"
       FROM [[    } else if (known == UINT64_MAX) {
      known = sample.time_ns;]]
       TO [[    } else {
      for (uint64_t& any : known_ns) any = any == UINT64_MAX ? sample.time_ns : any;]]
       SAYS "A thread that slept all the time makes frames whole whose waits were merged.")
mutant(early_end_is_forgotten FILE src/session/frame_keeper.cc TEST session_test CASES "[frame_keeper]"
       FROM [[void FrameKeeper::EndThread(uint32_t thread) { ended_.insert(thread); }]]
       TO [[void FrameKeeper::EndThread(uint32_t thread) {
  for (const auto& [key, kind] : kinds_) {
    if (key.first == thread) ended_.insert(thread);
  }
}]]
       SAYS "A short-lived thread that marked frames keeps all samples from being released.")
mutant(thread_that_ends_has_slept FILE src/session/off_cpu.cc TEST session_test CASES "[off_cpu]"
       FROM [[if (state.phase == Phase::kUnknown && has_run) state.phase = Phase::kOn;]] TO [[(void)has_run;]]
       SAYS "A thread that ran without a switch until it ended is told to have slept.")
mutant(thread_that_ends_in_a_stop_has_run FILE src/session/off_cpu.cc TEST session_test CASES "[off_cpu]"
       FROM [[time_ns <= known_until_ns_ || state.seen_running]] TO [[time_ns <= UINT64_MAX || state.seen_running]]
       SAYS "A thread that slept until the sampler was stopped, and ended then, is told to have run.")
mutant(resume_knows_no_switches FILE src/session/off_cpu.cc TEST session_test CASES "[off_cpu]"
       FROM [[  known_until_ns_ = UINT64_MAX;
]]
       TO [[]]
       SAYS "After a pause, a thread that ran until it ended is told to have slept.")
mutant(forgotten_zones_are_none FILE src/session/whole_frames.cc TEST session_test CASES "[whole_frames]"
       FROM [[known_ns[i] = std::max(known_ns[i], zones_known_ns[i]);]] TO [[known_ns[i] += 0;]]
       SAYS "An early frame is told to have been in no zone.")
mutant(preempter_of_another_wait FILE src/session/preemptions.cc TEST session_test CASES "[preemptions]"
       FROM [[absence.out_ns >= wait.ran_from_ns && ]] TO [[]]
       SAYS "If records are missing, a wait has the preempter of an earlier one.")
mutant(first_preempter_is_the_longest FILE src/session/preemptions.cc TEST session_test CASES "[preemptions]"
       FROM [[      same->ns += ns;
]]
       TO [[]]
       SAYS "A thread that ran often, but briefly each time, is not counted with all of its time.")
mutant(losses_are_ignored FILE src/session/preemptions.cc TEST session_test CASES "[preemptions]"
       FROM [[  if (cpu.is_known && cpu.running.tid != change.from_tid) LoseCpu(cpu);
]]
       TO [[]]
       SAYS "After a switch without a record, a thread is told as the one that ran, though others ran as well.")
mutant(one_switch_loses_all_cpus FILE src/session/preemptions.cc TEST session_test CASES "[preemptions]"
       FROM [[change.from_tid) LoseCpu(cpu);]] TO [[change.from_tid) return Lose(), Add(change);]]
       SAYS "A switch without a record on one CPU takes the preempters of all others away.")
mutant(task_suspended_elsewhere_runs_on FILE src/count/task/task_changes.cc TEST session_test CASES "[tasks]"
       FROM [[thread.changes.back().number = 0, thread.changes.back().text = kUnknown;]] TO [[return;]]
       SAYS "Samples after a task was suspended by another thread are told to be the task's.")
mutant(lost_switches_of_tasks_are_known FILE src/count/task/task_changes.cc TEST session_test CASES "[tasks]"
       FROM [[      AddChange(thread, {.ns = event.from_ns, .text = kUnknown});
]]
       TO [[]]
       SAYS "Samples where switches of tasks were lost have the last task that is known.")
mutant(task_ended_elsewhere_runs_on FILE src/count/task/task_recording.cc TEST session_test CASES "[tasks]"
       FROM [[return has(lost_, log) || has(lost_now, log);]] TO [[return has({}, log);]]
       SAYS "Samples after another thread has ended a task are the task's until its own thread switches.")
mutant(zones_stay_known_when_detached FILE src/session/zone_timeline.cc TEST session_test CASES "what fell in zones after*"
       FROM [[    known_until_ns_ = std::min(known_until_ns_, read_until_ns_);
]]
       TO [[]]
       SAYS "Samples keep the last zone that was known after another recording of the zones began.")
mutant(listed_thread_is_summed_up FILE src/session/thread_table.cc TEST session_test CASES "[listed_threads]"
       FROM [[if (std::ranges::find(listed_, entry.index) == listed_.end()) ended_]] TO [[ended_]]
       SAYS "A listed thread that ends early is no longer in the profile.")
mutant(unlisted_threads_stay FILE src/session/drop_threads.cc TEST session_test CASES "[listed_threads]"
       FROM [[(is_listed[i] && has_name)]] TO [[has_name]]
       SAYS "The list of threads has no effect.")
mutant(cut_chain_is_whole FILE src/session/aggregator.cc TEST session_test CASES "[kernel_callers]"
       FROM [[ || callers.size() + 1 >= options_.max_chain;]] TO [[;]]
       SAYS "A stack is told to be whole, although the kernel has cut its part.")
mutant(kernel_calls_after_themselves FILE src/session/stack_table.cc TEST session_test CASES "[kernel_callers]"
       FROM [[callers[i] - 1, was_cut]] TO [[callers[i], was_cut]]
       SAYS "The kernel's callers have the line after their call.")
mutant(left_out_frames_have_no_mark FILE src/session/live_ends.cc TEST session_dwarf_test CASES "a stack that is too deep for a record*"
       FROM [[*at = StackTable::kLeftOut;]] TO [[*at = room[0];]]
       SAYS "In a deep stack, calls seem to call each other that did not.")
mutant(quota_of_the_past_is_used_up FILE src/session/cpu_quotas.cc TEST session_test CASES "an account that*"
       FROM [[Account{before_ns, throttled_ns})]] TO [[Account{before_ns, 0})]]
       SAYS "What a CPU quota has cost before the session explains the session's first waits.")
mutant(any_thread_makes_room FILE src/session/look_files.cc TEST session_test CASES "[look_files]"
       FROM [[entry->last_use = ++uses_;]] TO [[++uses_;]]
       SAYS "A thread that is looked at often is looked at slowly, once there are many threads.")
mutant(child_keeps_looking FILE src/session/look_files.h TEST session_test CASES "[look_files]"
       FROM [[static_cast<LookFiles*>(self)->CloseAll();]] TO [[(void)self;]]
       SAYS "A forked child has descriptors of its parent's threads.")
mutant(names_of_batches_are_free FILE src/session/aggregator_profile.cc TEST session_test CASES "batches have*"
       FROM [[const CpuTime cpu_time(named_.cpu_ns);]] TO [[]]
       SAYS "A report says that almost none of a session's CPU time went to names.")
mutant(last_names_alone_cost FILE src/session/impl_profile.cc TEST session_test CASES "a session's CPU time is*"
       FROM [[(naming_before_ns + own_cpu_ns_]] TO [[(0 * naming_before_ns + own_cpu_ns_]]
       SAYS "The same after a snapshot.")
mutant(open_wait_is_stolen FILE src/session/stolen_times.cc TEST session_test CASES "[stolen_times]"
       FROM [[state.readings[1].at_ns <= at_ns) {]] TO [[true) {]]
       SAYS "A wait that is not over when the clock is read is told as taken by the machine.")
mutant(lost_switches_are_stolen FILE src/session/stolen_times.cc TEST session_test CASES "losses take back*"
       FROM [[return !one.is_checked;]] TO [[return one.ns == 0;]]
       SAYS "A wait whose records were lost is told as taken by the machine.")
mutant(old_losses_take_back FILE src/session/stolen_times.h TEST session_test CASES "losses that were told before*"
       FROM [[void NoteLoss() { is_check_due_ = true; }]] TO [[void NoteLoss() {}]]
       SAYS "What the machine takes of a thread is not told if records were lost at any time before.")
mutant(full_ring_is_the_machine FILE src/session/impl.cc TEST session_test CASES "what was lost with *"
       FROM [[if (stolen.is_check_due()) stolen.Check]] TO [[if (false) stolen.Check]]
       SAYS "A frame's time on its CPU is told as taken by the machine once records of switches are lost.")
mutant(late_samples_have_no_name FILE src/session/thread_table.cc TEST session_test CASES "a flight recorder reads samples*"
       FROM [[  if (ends_ns.size() <= kMaxLate) return;
]]
       TO [[]]
       SAYS "A flight recorder's samples of threads that ended early belong to threads without names.")
mutant(frames_are_older_than_samples FILE src/session/timelines.h TEST session_test CASES "frames are kept as long as samples"
       FROM [[std::max(start_ns, from_ns)]] TO [[start_ns]]
       SAYS "A flight recorder's frames go back further than its samples, and are told to be whole.")
mutant(who_waits_for_a_cpu_is_idle FILE src/session/idle_watch.cc TEST session_test CASES "[idle_watch]"
       FROM [[  if (runs) {]] TO [[  if (false) {]]
       SAYS "A session ends while a thread waits for a CPU, or runs for long.")
mutant(flight_is_always_whole FILE src/session/flight_recorder.cc TEST session_test CASES "[flight_recorder]"
       FROM [[std::max({profile.from_ns, whole_from_ns_, stats.overwritten_until_ns})]]
       TO [[std::max(profile.from_ns, whole_from_ns_)]]
       SAYS "Time of which only some CPUs have samples is said to be whole.")
mutant(flight_keeps_all FILE src/session/flight_recorder.cc TEST session_test CASES "[flight_recorder]"
       FROM [[if (layout.TimeOf(record).value_or(UINT64_MAX) >= cut_ns_) return false;]] TO [[return false;]]
       SAYS "The last milliseconds are all that the rings hold.")
mutant(snapshot_counts_again FILE src/session/flight_recorder.cc TEST session_test CASES "[flight_recorder]"
       FROM [[  earlier_ = described_;]] TO [[]]
       SAYS "The accounting after a snapshot has what the snapshot had.")
mutant(mappings_are_read_once FILE src/session/fault_memory.cc TEST session_test CASES "[fault_memory]"
       FROM [[if (time_ns >= read_ns_ || mapping == nullptr) {]] TO [[if (read_ns_ == 0) {]]
       SAYS "Memory that is mapped later is not known.")
mutant(states_are_the_next_frames FILE src/session/frame_texts.cc TEST session_test CASES "[frame_texts]"
       FROM [[text.ns >= frame.to_ns) return false;]] TO [[text.ns >= frame.from_ns) return false;]]
       SAYS "What another thread says of a frame is lost.")
mutant(own_wakers_are_foreign FILE src/session/foreign_wakers.cc TEST session_test CASES "[foreign_wakers]"
       FROM [[} else if (waker.pid == pid_) {]] TO [[} else if (waker.pid == 0) {]]
       SAYS "Threads of this program are told as another program's.")
mutant(paused_frames_are_whole FILE src/session/timelines.h TEST session_test CASES "[pauses]"
       FROM [[    pauses.Mark(profile);
]]
       TO [[]]
       SAYS "A frame of a pause was taken by the machine.")
mutant(snapshot_lasts_until_it_is_named FILE src/session/impl_profile.cc TEST session_test CASES "[flight_recorder]"
       FROM [[Profile profile = MakeProfile(taken->to_ns);]] TO [[Profile profile = MakeProfile(sys::ClockNs(CLOCK_MONOTONIC));]]
       SAYS "Successive snapshots overlap by the time that unwinding and naming take.")
mutant(snapshot_forgets_later_frames FILE src/session/zone_timeline_keep.cc TEST session_test CASES "[flight_recorder]"
       FROM [[return frame.to_ns <= to_ns; });]] TO [[return frame.to_ns <= to_ns + 1'000'000'000; });]]
       SAYS "Frames that end while a snapshot is made are in no profile.")
mutant(snapshot_has_frames_that_end_later FILE src/session/zone_timeline.cc TEST session_test CASES "[flight_recorder]"
       FROM [[if (!keeping_ && frame.to_ns > tracks.to_ns()) continue;]] TO [[]]
       SAYS "A frame is in two profiles, and in one of them without its end.")
mutant(snapshot_forgets_later_tasks FILE src/count/task/task_changes.cc TEST session_test CASES "[tasks]"
       FROM [[std::ranges::upper_bound(thread.changes, until_ns, {}, &Change::ns);]] TO [[std::ranges::upper_bound(thread.changes, until_ns + 1'000'000'000, {}, &Change::ns);]]
       SAYS "Samples that are taken while a snapshot is made have no task.")
mutant(signalled_waits_for_the_condition FILE src/session/lock_records.cc TEST session_test CASES "[lock_records]"
       FROM [[if (slept_at - record.mutex < sys::kMutexBytes) return true;]] TO [[if (slept_at - record.mutex < sys::kMutexBytes) return false;]]
       SAYS "A thread that waits for a mutex is said to wait for a condition.")
mutant(unloaded_locks_keep_their_names FILE src/session/lock_names.cc TEST session_test CASES "[lock_names]"
       FROM [[found->second.module != modules[address]) names.erase(found);]] TO [[found->second.module.empty()) names.erase(found);]]
       SAYS "Memory that was a library's has the name of its lock.")
mutant(locks_have_names_of_later_modules FILE src/session/lock_records.cc TEST session_test CASES "[lock_records]"
       FROM [[if (lock.name.empty() || wait->examined_ns < MappedNs(lock)) continue;]]
       TO [[if (lock.name.empty()) continue;]]
       SAYS "A lock has the name of a variable that was mapped after the wait.")
mutant(zones_of_ended_threads_want_memory FILE src/session/zone_timeline_keep.cc TEST session_test CASES "[reductions]"
       FROM [[losses_.of_ended += std::erase_if(zones_,]] TO [[losses_.forgotten += std::erase_if(zones_,]]
       SAYS "Zones of threads that were summed up are said to be dropped for want of memory.")
mutant(handlers_sleep_is_the_lock FILE src/session/lock_records.cc TEST session_test CASES "[lock_records]"
       FROM [[return wait.preempted || in_handler ||]] TO [[return wait.preempted || (in_handler && wait.preempted) ||]]
       SAYS "Sleep in a signal handler is said to be a wait for the lock that it has interrupted.")
mutant(foreign_times_are_the_sessions FILE src/sample/sampler_drain.cc TEST session_test CASES "samples by another sampler's*"
       FROM [[const uint64_t time = own_time.value_or(slot.last_time_ns);]]
       TO [[const uint64_t time = plan_.layout().TimeOf(raw).value_or(slot.last_time_ns);]]
       SAYS "Beside a profiler with another clock, a thread of a session ends in 57 years, and keeps no slow frame's faults.")
