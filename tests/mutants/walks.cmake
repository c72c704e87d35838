# Mutants that bring back defects that were real once, each for the random walk that must find it: see run.cmake.
# PERFKIT_WALK_SECONDS=60 gives each walk a minute; the usual seconds are too few for most of these.
mutant(neighbours_are_swapped FILE src/count/source_builder_groups.cc TEST count_test CASES "[walk]~[.heavy]"
       FROM [[order != whole_set || IsEnergy]] TO [[order.size() != whole_set.size() || IsEnergy]]
       SAYS "A clock that is read by its own page has the count of the event beside it, which has the clock's time.")
mutant(same_migrations_twice FILE src/count/source_builder.cc TEST count_test CASES "[walk]~[.heavy]"
       FROM [[if (source_->plan_.migration_index < kMaxEvents) {  // Requested]]
       TO [[if (source_->plan_.migration_index > kMaxEvents) {  // Requested]]
       SAYS "Migrations that are in a set under two names have a number under the second one only.")
mutant(epochs_of_a_tracepoint FILE src/count/source_builder.cc TEST count_test CASES "[walk]~[.heavy]"
       FROM [[const bool tells_epochs = event(i).parts[0].type == sys::kTypeSoftware;]]
       TO [[const bool tells_epochs = event(i).parts[0].type >= sys::kTypeSoftware;]]
       SAYS "Counts of tracepoints say that the thread was not switched while it slept.")
mutant(epochs_of_a_tracepoint_group FILE src/count/source_builder.cc TEST count_test CASES "[walk]~[.heavy]"
       FROM [[if (event(group.members()[m]).parts[0].type == sys::kTypeSoftware) return group.fd(m);]]
       TO [[if (event(group.members()[m]).parts[0].type >= sys::kTypeSoftware) return group.fd(m);]]
       SAYS "Counts of tracepoints that are read as a group say that the thread was not switched while it slept.")
mutant(half_of_a_clock FILE src/count/paths.cc TEST count_test CASES "[walk]~[.heavy]"
       FROM [[if (is_clock && (event.exclude_user || event.exclude_kernel)) {]]
       TO [[if (is_clock && event.exclude_user && event.exclude_kernel) {]]
       SAYS "task-clock:u has the time in the kernel too, and no flag says so.")
mutant(hypervisor_is_silent FILE src/count/paths.cc TEST count_test CASES "[walk]~[.heavy]"
       FROM [[if (event.exclude_user && event.exclude_kernel && !KnowsHypervisor(event)) {]]
       TO [[if (event.exclude_user && event.exclude_kernel && KnowsHypervisor(event)) {]]
       SAYS "page-faults:h counts 0 for ever, without a reason.")
mutant(migrations_end_with_a_gap FILE src/count/switch_log.cc TEST count_test CASES "[walk]~[.heavy]"
       FROM [[gaps_ = std::min(gaps_ + 1, detail::kMaxGaps);]] TO [[gaps_ = detail::kMaxGaps;]]
       SAYS "After one overrun of the ring of switches a set never has migrations again.")
mutant(gap_has_no_migrations FILE src/count/switch_log.cc TEST count_test CASES "[walk]~[.heavy]"
       FROM [[  gaps_ = std::min(gaps_ + 1, detail::kMaxGaps);
]]
       TO [[]]
       SAYS "Migrations whose records were overwritten are missing in a count that is called exact.")
mutant(jump_ends_the_base FILE src/count/base_renewer.h TEST count_test CASES "[walk]~[.heavy]"
       FROM [[  if ((plan.base.version & 1) != 0 && renewer_ != here) return false;
  base.version = plan.base.version;]]
       TO [[  if ((plan.base.version & 1) != 0) return false;
  base.version = plan.base.version |= 1;]]
       SAYS "After a jump out of a read the base is never renewed: reads are slow, and migrations end with the next gap.")
mutant(older_base_replaces_a_handlers FILE src/count/base_renewer.h TEST count_test CASES "[walk]~[.heavy]"
       FROM [[if (is_latest) Commit(base, epoch]] TO [[if (is_latest || expected != base.version) Commit(base, epoch]]
       SAYS "A signal handler that reads during the renewal of the base sets the clock ahead by its own time.")
mutant(half_a_base_is_used FILE src/count/base_renewer.h TEST count_test CASES "[walk]~[.heavy]"
       FROM [[  detail::ClockBase base;
  const auto here]]
       TO [[  detail::ClockBase& base = plan.base;
  const auto here]]
       SAYS "After a jump out of a read the clock has time off the CPU, and migrations lack the latest ones.")
mutant(forked_set_counts FILE src/count/source.cc TEST count_test CASES "[walk]~[.heavy]"
       FROM [[  in_forked_child_ = true;
  plan_.owner]]
       TO [[  if (!in_forked_child_) return;
  plan_.owner]]
       SAYS "A forked child's copy of a set has the counts of its parent, or ends the child.")
mutant(moved_from_set_counts FILE src/count/counter.cc TEST count_test CASES "[walk]~[.heavy]"
       FROM [[CounterReader(std::exchange(static_cast<CounterReader&>(other), CounterReader())),]] TO [[CounterReader(other),]]
       SAYS "A set that was moved from has the counts of the set that has its events now, or of freed memory.")
mutant(assigned_set_has_no_events FILE src/count/counter.cc TEST count_test CASES "[walk]~[.heavy]"
       FROM [[  owned_.swap(taken.owned_);
]]
       TO [[]]
       SAYS "A set that was assigned reads memory that is freed.")
mutant(zone_that_ended_elsewhere_has_children FILE src/count/frame/frame_counter_impl.cc TEST count_test
       CASES "[zone_walk]~[.heavy]"
       FROM [[  CatchUp(thread);
  EnterReady(thread, id, zone);]]
       TO [[  EnterReady(thread, id, zone);]]
       SAYS "Zones after one that has ended on another thread are below it.")
mutant(zone_that_ended_elsewhere_is_a_call FILE src/count/frame/zone_tree.cc TEST count_test CASES "[zone_walk]~[.heavy]"
       FROM [[  sums.at_least = true;]]
       TO [[  sums.at_least = true;
  ++sums.calls;]]
       SAYS "Calls that ended on another thread, of which nothing was counted, are in the number of calls.")
mutant(self_of_an_abandoned_zone_wraps FILE src/count/frame/zone_tree.cc TEST count_test CASES "[zone_walk]~[.heavy]"
       FROM [[  events_.Raise(sums, children);
]]
       TO [[]]
       SAYS "A zone that ended on another thread has less than the zones below it, and a self near 2^64.")
mutant(long_names_are_one FILE src/count/frame/zone_tree.cc TEST count_test CASES "[zone_walk]~[.heavy]"
       FROM [[std::strcmp(nodes_.detail(*child).name, text) != 0]] TO [[std::strncmp(nodes_.detail(*child).name, text, 63) != 0]]
       SAYS "Zones whose names agree in the first 63 characters are one zone.")
mutant(leave_while_off_is_skipped FILE src/count/frame/frame_counter_impl_cold.cc TEST count_test
       CASES "[zone_walk]~[.heavy]"
       FROM [[    worker->draining = true;
    draining_.fetch_add(1, std::memory_order_relaxed);
]]
       TO [[]]
       SAYS "If a worker leaves a zone while counting is disabled, its later zones are below that one.")
mutant(worker_keeps_its_events FILE src/count/frame/frame_counter_impl.cc TEST count_test CASES "[zone_walk]~[.heavy]"
       FROM [[  if (thread.open()) thread.CloseOutside(ns_per_tick_q32_);
]]
       TO [[]]
       SAYS "A worker that was inside a zone when counting was disabled keeps its descriptors open.")
mutant(zones_of_handlers_vanish FILE src/count/frame/frame_counter_impl.cc TEST count_test CASES "[zone_walk]~[.heavy]"
       FROM [[  mistakes_.AddInterrupted();
]]
       TO [[]]
       SAYS "Zones of signal handlers are missing, and are not in the number of those that were dropped.")
mutant(self_is_rounded_alone FILE src/count/frame/zone_report.cc TEST count_test CASES "[zone_walk]~[.heavy]"
       FROM [[stats.self_wall_ns = stats.wall_ns - ChildrenWallNs(impl, group, node);]]
       TO [[stats.self_wall_ns = ToNs(impl, self.ticks);]]
       SAYS "The time of a zone is not its self and that of its children.")
mutant(rings_have_the_new_rate FILE src/sample/sample_weight.h TEST sample_test CASES "[sampler_walk]~[.heavy]"
       FROM [[    earlier_.push_back({time_ns, now_});
]]
       TO [[]]
       SAYS "After SetRate, samples that are in the rings already represent as much as those of the new rate.")
mutant(foreign_sample_is_of_the_last_event FILE src/sample/writer_index.cc TEST sample_test CASES "[sampler_walk]~[.heavy]"
       FROM [[  if (several) stand_in_ = base::IdTable::kNone;]]
       TO [[  if (several && stand_in_ == base::IdTable::kNone) return;]]
       SAYS "Beside another sampler, samples of one software event are attributed to another.")
mutant(foreign_clock_is_believed FILE src/sample/ring_drain.h TEST sample_test CASES "[sampler_walk]~[.heavy]"
       FROM [[&& *time <= latest_ns_ ? time]] TO [[&& *time > 0 ? time]]
       SAYS "Beside a sampler with CLOCK_REALTIME, records of a ring are held back until Stop.")
mutant(late_threads_are_not_sampled FILE src/sample/sampler_drain.cc TEST sample_test CASES "[sampler_walk]~[.heavy]"
       FROM [[    if (is_running()) AttachNewcomers();
]]
       TO [[]]
       SAYS "With Rings::kPerThread, threads that start after Start are never sampled.")
mutant(pause_of_one_ring_set FILE src/sample/sampler_rings.cc TEST sample_test CASES "[sampler_walk]~[.heavy]"
       FROM [[  status.Update(spare.Pause(pause));
]]
       TO [[]]
       SAYS "A sampler with overwriting rings goes on in a pause after a snapshot.")
mutant(new_rate_of_one_ring_set FILE src/sample/event_replacer.cc TEST sample_test CASES "[sampler_walk]~[.heavy]"
       FROM [[  for (RingSet* const set : {&rings_.active, &rings_.spare}) set->events.swap(set->fresh);]]
       TO [[  rings_.active.events.swap(rings_.active.fresh);]]
       SAYS "After SetRate, overwriting rings have no samples after every second snapshot.")
mutant(thrown_record_comes_again FILE src/ring/time_merge.h TEST sample_test CASES "[sampler_walk]~[.heavy]"
       FROM [[      if (visited != nullptr) visited->first = kNothing;
]]
       TO [[]]
       SAYS "A record whose visitor has thrown is delivered and counted twice.")
mutant(interrupted_count_is_unknown FILE src/sample/ring_event.cc TEST sample_test CASES "[sampler_walk]~[.heavy]"
       FROM [[if (got < 0 && errno != EINTR) break;]] TO [[if (got < 0) break;]]
       SAYS "If a signal interrupts stats(), an event has a count of 0, or an old one.")
mutant(refused_events_replace_the_old FILE src/sample/event_replacer.cc TEST sample_test CASES "[sampler_walk]~[.heavy]"
       FROM [[  const absl::Status status = attacher_.AttachAll(level, false);
  Swap();]]
       TO [[  const absl::Status status = attacher_.AttachAll(level, false);
  if (status.ok()) Swap();]]
       SAYS "If descriptors are too few for a new rate or size of stacks, sampling ends, and its counts are lost.")
mutant(ended_thread_keeps_its_owner FILE src/sample/inheritance_map.h TEST sample_test CASES "[sampler_walk]~[.heavy]"
       FROM [[    if (!IsOlder(tid, time_ns)) owners_.erase(tid);
]]
       TO [[    (void)IsOlder(tid, time_ns);
]]
       SAYS "Samples of a thread that has the tid of an ended one are dropped as duplicates.")
mutant(builds_are_one_module FILE src/proc/processes.cc TEST symbolize_test CASES "[module_walk]~[.heavy]"
       FROM [[id.life, id.uncertain) + id.build_id;]] TO [[id.life, id.uncertain);]]
       SAYS "A library that is rebuilt and loaded again has the names of its first build.")
mutant(devices_are_one_module FILE src/proc/processes.cc TEST symbolize_test CASES "[module_walk]~[.heavy]"
       FROM [[id.path, id.device, id.inode, id.life]] TO [[id.path, 0, id.inode, id.life]]
       SAYS "A library in a container has the names of the one outside with the same path and inode.")
mutant(rewritten_file_is_known FILE src/proc/processes.cc TEST symbolize_test CASES "[module_walk]~[.heavy]"
       FROM [[} else if (state == FileState::kChanged) {]] TO [[} else if (state == FileState::kChanged && id.inode == 0) {]]
       SAYS "A library without build-id that is written anew in place and loaded again has the names of its first build.")
mutant(file_of_the_same_path_is_believed FILE src/proc/module_file.cc TEST symbolize_test CASES "[module_walk]~[.heavy]"
       FROM [[return id.inode != 0 && (stamp.inode]] TO [[return id.inode == 0 && (stamp.inode]]
       SAYS "A file that was deleted while it was mapped has the names of the file that is at its path now.")
mutant(file_changed_since_is_believed FILE src/proc/module_file.cc TEST symbolize_test CASES "[module_walk]~[.heavy]"
       FROM [[id.mapped_ns != 0 && IsChangedSince(]] TO [[id.mapped_ns == 0 && IsChangedSince(]]
       SAYS "A library that was written anew after it was mapped has the names of what is in its file now.")
mutant(new_build_names_the_old FILE src/proc/module_file.cc TEST symbolize_test CASES "[module_walk]~[.heavy]"
       FROM [[if (id.build_id.empty()) return absl::OkStatus();]]
       TO [[if (id.build_id.empty() || !id.path.empty()) return absl::OkStatus();]]
       SAYS "A library that was replaced by another build while it was mapped has the names of that build.")
mutant(child_has_no_mappings FILE src/proc/processes.cc TEST symbolize_test CASES "[module_walk]~[.heavy]"
       FROM [[  child.space = std::move(space);
]]
       TO [[  child.space = Space();
]]
       SAYS "Code that a forked child runs is in no known mapping.")
mutant(jit_list_is_read_once FILE src/proc/jit_map.cc TEST symbolize_test CASES "[module_walk]~[.heavy]"
       FROM [[  ReadMore();
  const std::optional<JitFunction> own]]
       TO [[  if (!Known(pc)) ReadMore();
  const std::optional<JitFunction> own]]
       SAYS "Code that was made at run time has the name of earlier code at its address.")
mutant(jit_list_of_anybody FILE src/sys/owned_tail.cc TEST symbolize_test CASES "[module_walk]~[.heavy]"
       FROM [[if (std::find(owners.begin(), owners.end(), info.st_uid) == owners.end()) {]]
       TO [[if (owners.empty()) {]]
       SAYS "A list that another user has left at /tmp/perf-PID.map names the functions of a process.")
