# Mutants of src/count, except for its frames: see run.cmake.
mutant(ring_counts_bytes FILE include/perfkit/detail/user_page.h TEST count_test CASES "a set counts what happens, whatever*"
       FROM [=[if (LoadShared(*head) == at) [[likely]]
      return value;]=]
       TO [=[if (LoadShared(*head) == at && value + 1 != 0) [[likely]]
      return (0 - at) / 16;]=]
       SAYS "Page faults are 3 to 1,000 times too many while a profiler takes stacks of them.")
mutant(usage_is_user_only FILE src/count/source_builder.cc TEST count_test CASES "[modifiers]"
       FROM [[options_.user_only && CanBeUserOnly(event(i));]] TO [[false;]]
       SAYS "Faults of the kernel are in a count that is of user space only.")
mutant(weights_by_ring FILE src/count/paths.cc TEST count_test CASES "[tracepoint_weight]"
       FROM [[ && !event::MayCountWeight(event);]] TO [[;]]
       SAYS "sched:sched_stat_runtime counts 0.")
mutant(gap_is_not_told FILE src/count/switch_log.cc TEST count_test CASES "[switch_log]"
       FROM [[  gaps_ = std::min(gaps_ + 1, detail::kMaxGaps);
]]
       TO [[]]
       SAYS "Migrations that were overwritten are left out of a number that is called exact.")
mutant(unknown_cpu_is_a_migration FILE src/count/switch_log.cc TEST count_test CASES "[switch_log]"
       FROM [[if (!record.is_out() && cpu_ != ~0u && record.cpu != cpu_)]] TO [[if (!record.is_out() && record.cpu != cpu_)]]
       SURVIVES "not killed yet: takes a thread whose CPU is not known when counting starts (no rseq)"
       SAYS "The first switch of a thread counts as a migration.")
mutant(record_under_way_is_read FILE src/count/switch_log.cc TEST count_test CASES "[switch_log]"
       FROM [[if (head - position_ > room) {]] TO [[if (head - position_ > room + 2 * sizeof(SwitchRecord)) {]]
       SURVIVES "not killed yet: takes a ring that is full to the last record at the moment of a read"
       SAYS "An overwritten switch record is counted.")
mutant(switches_out_are_migrations FILE src/count/switch_log.cc TEST count_test CASES "[switch_log]"
       FROM [[    cpu_ = record.cpu;
  }
  const uint64_t head_now]]
       TO [[  }
  const uint64_t head_now]]
       SAYS "After one migration each switch counts as one.")
mutant(overwritten_records_are_read FILE src/count/switch_log.cc TEST count_test CASES "[switch_log]"
       FROM [[if (head_now - before.position_ <= room) return;]] TO [[if (head_now >= before.position_) return;]]
       SAYS "A thread that is switched often during a read lacks migrations in a count that is called exact.")
mutant(major_faults_dropped FILE src/count/usage.cc TEST count_test CASES "[refused_read]"
       FROM [[= minor + major;]] TO [[= minor;]]
       SAYS "Where perf is forbidden, page faults lack those that waited for the disk.")
mutant(clock_of_the_process FILE src/count/usage.cc TEST count_test CASES "[fault],[refused_read]"
       FROM [[clock_gettime(CLOCK_THREAD_CPUTIME_ID, &clock)]] TO [[clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &clock)]]
       SAYS "Where perf is forbidden, a thread's CPU time contains that of all threads.")
mutant(usage_without_the_clock FILE src/count/usage.cc TEST count_test CASES "[refused_read]"
       FROM [[if ((fields & ~BitOf(UsageField::kTaskClock)) == 0) return true;]] TO [[if (fields == 0) return true;]]
       SAYS "Where perf is forbidden, a scope of the CPU clock alone takes two system calls more.")
mutant(standing_clock_passes FILE src/count/self_test.cc TEST count_test CASES "[self_test]"
       FROM [[gain >= seen.cpu_ns / 2 && gain > seen.reading_ns;]] TO [[gain >= seen.cpu_ns / 2;]]
       SAYS "A clock that stands still is used if time is stolen from its reading, and reports 0 ns.")
mutant(too_many_faults_pass FILE src/count/self_test.cc TEST count_test CASES "[self_test],[fault]"
       FROM [[(gain >= 1 && gain <= Gain(seen, UsageField::kPageFaults));]] TO [[gain >= 1;]]
       SAYS "A ring that counts too much is used.")
mutant(fallback_is_never_set FILE src/count/scope.cc TEST count_test CASES "*scope*"
       FROM [[if ((fallback_ >> i & 1) != 0) validity.flags |= Validity::kFallback;]] TO [[if ((fallback_ >> i & 2) != 0) validity.flags |= Validity::kFallback;]]
       SAYS "A number of getrusage is reported as one of perf.")
mutant(missing_scope_is_a_number FILE src/count/scope.cc TEST count_test CASES "*scope*"
       FROM [[|| (missing_ >> i & 1) != 0) return]] TO [[) return]]
       SAYS "A scope whose event could not be read contributes 0 to a sum that is called whole.")
mutant(merged_totals_forget_missing FILE src/count/scope.cc TEST count_test CASES "*scope*"
       FROM [[  missing_ |= other.missing_;
]]
       TO [[]]
       SAYS "A sum of several threads is called whole although one of them lacks an event.")
mutant(no_scopes_is_zero FILE src/count/scope.cc TEST count_test CASES "*scope*"
       FROM [[if (scopes_ == 0) return]] TO [[if (scopes_ == 0 && cross_thread_ > 0) return]]
       SAYS "What was never counted is reported as 0.")
mutant(kernel_share_of_user_instructions FILE src/count/metric/evaluator.cc TEST count_test CASES "*etric*"
       FROM [[candidate.word == wanted.word && candidate.modifiers == wanted.modifiers]] TO [[candidate.word == wanted.word]]
       SAYS "User instructions are divided by all cycles.")
mutant(metric_of_the_better_coverage FILE src/count/metric/evaluator.cc TEST count_test CASES "*etric*"
       FROM [[std::min(result.coverage, part->coverage)]] TO [[part->coverage]]
       SAYS "A ratio seems to be better covered than it is.")
mutant(division_by_zero FILE src/count/metric/evaluator.cc TEST count_test CASES "*etric*"
       FROM [[if (b.value == 0) return std::nullopt;]] TO [[if (b.value == 0) return Exact(0);]]
       SAYS "A report says '0.00 insn/cycle' although there is no such number.")
mutant(metric_of_mixed_modes FILE src/count/metric/evaluator.cc TEST count_test CASES "*etric*"
       FROM [[if (all.empty() || user_only.empty()) return]] TO [[if (all.empty() || !all.empty()) return]]
       SAYS "Instructions of user space are divided by cycles of user space and the kernel.")
mutant(uncounted_part_is_zero FILE src/count/metric/evaluator.cc TEST count_test CASES "*etric*"
       FROM [[if (!part->validity.counted()) {]] TO [[if (part->validity.has(Validity::kOtherThread)) {]]
       SAYS "A metric takes an event that was not counted for 0.")
mutant(task_before_the_log_is_unknown FILE src/count/task/task_log.cc TEST count_test CASES "a log has each task's time*"
       FROM [[const uint64_t words[] = {reader, before_ticks, before.task, before.awaiters};]]
       TO [[const uint64_t words[] = {reader, before_ticks, 0, before.awaiters};]]
       SAYS "A task that ran when a recording began has no number until its first switch.")
mutant(awaiters_are_not_logged FILE src/count/task/task_log.cc TEST count_test CASES "a log has each task's time*"
       FROM [[now.node, now.awaiters, words, ticks);]] TO [[now.node, 0, words, ticks);]]
       SAYS "Samples of a coroutine do not show which coroutines await it.")
mutant(chain_without_its_awaiters FILE src/count/task/await_chains.h TEST count_test CASES "await chains:*"
       FROM [[uint32_t{link.awaiters} << 16 | link.node;]] TO [[uint32_t{link.node};]]
       SAYS "Of a chain of awaiting coroutines only the innermost one is shown.")
mutant(own_reads_are_in_the_bytes FILE src/count/thread_io.cc TEST count_test CASES "[thread_events]"
       FROM [[= bytes.read - own;]] TO [[= bytes.read - 0 * own;]]
       SAYS "The bytes that a zone read contain what perfkit's own snapshots read.")
mutant(standing_allocations_pass FILE src/count/source_builder.cc TEST count_test CASES "[thread_events]"
       FROM [[  return between == before + 2 && *word != between;]] TO [[  return between >= before && *word >= between;]]
       SAYS "Where another malloc replaces the wrapped one, a zone has 0 allocations.")
mutant(unread_account_is_0 FILE src/count/thread_io.cc TEST count_test CASES "[thread_events]"
       FROM [[    now.missing |= read_ | written_;
]]
       TO [[]]
       SAYS "If the account of I/O cannot be read, its numbers are whatever the snapshot held.")
mutant(written_bytes_are_those_read FILE src/count/thread_io.cc TEST count_test CASES "[thread_events]"
       FROM [[= bytes.written;]] TO [[= bytes.read;]]
       SAYS "The bytes that system calls wrote are those that they read.")
mutant(energy_is_of_one_thread FILE src/count/format.cc TEST count_test CASES "[energy]"
       FROM [[reason.ok() && count::IsEnergy(event) ? "of the machine" : ""]] TO [[!reason.ok() && count::IsEnergy(event) ? "of the machine" : ""]]
       SAYS "A table shows the energy of the whole machine as a thread's own.")
mutant(inherited_events_are_one_group FILE src/count/source_builder.cc TEST count_test CASES "[inherited]"
       FROM [[format_.alone = (OpensApart() && !can_multiplex_) || size]] TO [[format_.alone = size]]
       SAYS "A pinned event and the clock beside it are never counted, and threads that end take numbers away.")
mutant(ending_thread_is_no_number FILE src/count/perf_group.cc TEST count_test CASES "[inherited]"
       FROM [[(errno == ECHILD && tries < kTriesOfInherited)]] TO [[(errno == ECHILD && tries < 0)]]
       SAYS "A group of hardware events of all threads is not counted while a thread ends.")
mutant(inherited_numbers_decrease FILE src/count/source_builder.cc TEST count_test CASES "[inherited]"
       FROM [[if (OpensApart()) group.ExpectEndingThreads();]] TO [[if (!OpensApart()) group.ExpectEndingThreads();]]
       SAYS "A difference of two readings is 2^64 less something while a thread ends.")
mutant(clock_of_the_packages_cpu FILE src/count/perf_group.cc TEST count_test CASES "[energy]"
       FROM [[  if (sites_.front().task_cpu.cpu >= 0) return false;]] TO [[  if (sites_.empty()) return false;]]
       SAYS "A thread's clock beside energy is the time of the CPU on which energy is read.")
mutant(handlers_disturb_bytes_read FILE src/count/thread_io.cc TEST count_test CASES "[thread_events]"
       FROM [[if (got > 0 && sys::own_bytes_read - own == static_cast<uint64_t>(got)) break;]] TO [[if (got > 0) break;]]
       SAYS "What a signal handler reads of counters is in the bytes of the interrupted code.")
mutant(new_counts_nothing FILE src/count/source_builder.cc TEST testing_test CASES "[allocations]"
       FROM [[  return between == before + 2 && *word != between;]] TO [[  return between == before + 2;]]
       SAYS "A program with an operator new of its own has 0 allocations by new.")
mutant(labels_after_another_recording FILE src/count/task/task_changes.cc TEST count_test CASES "task labels:*"
       FROM [[  if (is_detached_) return;
]]
       TO [[]]
       SAYS "After a second recording has begun, samples of the first have the task that ran then.")
mutant(labels_of_forgotten_times FILE src/count/task/task_labels.cc TEST count_test CASES "task labels:*"
       FROM [[      if (time_ns < thread.known_from_ns) return std::nullopt;
]]
       TO [[]]
       SAYS "A sample at a time that is forgotten is said to be outside of tasks.")
mutant(refused_clock_carries_switches FILE src/count/source_builder.cc TEST count_test CASES "switches are counted by an event of their own*"
       FROM [[if (clock_slot_ == kNoSlot || (banned_ >> clock_slot_ & 1) != 0) return false;]]
       TO [[if (clock_slot_ == kNoSlot) return false;]]
       SAYS "A set has two task-clock events, of which one only costs, after the self-test has refused the thread's clock.")
mutant(rights_are_read_each_time FILE src/sys/rights.h TEST count_test CASES "[fault]"
       FROM [[  LazyRights() = default;]] TO [[  LazyRights() : rights_(ReadRights()) {}]]
       SAYS "Each thread's first zone takes 20 us longer, for files that are needed after a refusal only.")
mutant(longest_budget_is_short FILE src/count/frame/hitch_reporter.h TEST count_test CASES "hitches: no frame*"
       FROM [[ticks < 0x1p64 ? static_cast<uint64_t>(ticks) : UINT64_MAX;]] TO [[ticks < 0x1p64 ? static_cast<uint64_t>(ticks) : 0;]]
       SAYS "With the budget that means never, each frame is a hitch.")
mutant(task_thread_counts_its_set_up FILE src/count/task/task_counter_impl.cc TEST testing_test CASES "what perfkit does*"
       FROM [[  attached->Start();  // After all that allocates.
]]
       TO [[]]
       SAYS "What is counted outside of tasks contains perfkit's own allocations for each thread.")
mutant(slots_count_their_set_up FILE src/count/frame/thread_slots.cc TEST testing_test CASES "what perfkit does*"
       FROM [[state->writer.StartAt(state->now);
    state->writer.Publish]] TO [[state->writer.Publish]]
       SAYS "The sum over threads contains perfkit's own allocations for each thread.")
mutant(first_path_is_the_reason FILE src/count/source_builder.cc TEST count_test CASES "migrations without a descriptor*"
       FROM [[if (path == ReadPath::kRing && detailed_switches_ && IsSoftware(event(i), sys::kSwCpuMigrations)) continue;]]
       TO [[if (path == ReadPath::kRing && detailed_switches_ && IsSoftware(event(i), sys::kSwCpuMigrations)) {
        reason = NoSuchPath(i, path);
        tried = true;
        continue;
      }]]
       SAYS "An ordinary user's migrations that lack a descriptor say that they cannot be read by a ring.")
mutant(clock_is_of_another_pmu FILE src/count/source_builder_groups.cc TEST count_test CASES "[counter_set]"
       FROM [[request.attr.read_format = sys::kFormatTotalTimeRunning;]] TO [[request.attr.config = sys::kSwTaskClock, request.attr.read_format = sys::kFormatTotalTimeRunning;]]
       SAYS "Until the first switch of its thread, a set counts no page faults, or its clock stands still.")
mutant(each_event_is_alone FILE src/count/source_builder.h TEST count_test CASES "[counter_set]"
       FROM [[if (is_software && leader_fd_ < 0)]] TO [[if (!is_software && leader_fd_ < 0)]]
       SAYS "Each event costs its thread a third of a microsecond more at a switch.")
