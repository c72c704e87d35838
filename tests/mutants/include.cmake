# Mutants of inline code in include/perfkit: see run.cmake. Each costs more than one compilation.

# Samples and rings.
mutant(words_are_taken_for_bytes FILE include/perfkit/detail/sample_fields.h TEST ring_test CASES "[sample]"
       FROM [[if (bytes > spare / 8) return false;]] TO [[if (bytes > spare) return false;]]
       SAYS "A damaged call chain makes the parser read past the record's end.")
mutant(number_of_items_overflows FILE include/perfkit/detail/sample_fields.h TEST ring_test CASES "[sample]"
       FROM [[      if (bytes > spare) return false;  // Else the product might overflow.
]]
       TO [[]]
       SAYS "A damaged number of branches makes a program crash that reads their counters.")
mutant(time_of_a_short_record FILE include/perfkit/detail/sample_inline.h TEST ring_test CASES "[record]"
       FROM [[ || back + RawRecord::kHeaderSize > record.size) return std::nullopt;]] TO [[) return std::nullopt;]]
       SAYS "The time of a record that is too short is read from the bytes before it.")
mutant(stack_has_its_reserved_size FILE include/perfkit/detail/sample_inline.h TEST ring_test CASES "[sample]"
       FROM [[detail::Load<uint64_t>(at + 8 + reserved)}, reserved};]] TO [[reserved}, reserved};]]
       SAYS "A copy of the stack ends in bytes that were never copied, and unwinding finds callers in them.")
mutant(same_mark_again_is_known FILE include/perfkit/call_chain.h TEST ring_test CASES "[chain]"
       FROM [[mark > last ? mark : ChainContext::kUnknown;]] TO [[mark >= last ? mark : ChainContext::kUnknown;]]
       SAYS "Garbage that follows a damaged frame pointer is a second part of the user's stack.")
mutant(held_record_is_given_back FILE include/perfkit/ring_reader.h TEST ring_test CASES "[merge]"
       FROM [[PublishTail(NextAt() - kept_bytes);]] TO [[PublishTail(NextAt());]]
       SAYS "The kernel overwrites a record that is about to be delivered.")
mutant(throw_brings_the_record_again FILE include/perfkit/ring_reader.h TEST ring_test CASES "[ring]"
       FROM [[if (reader != nullptr) End(false, stats);]] TO [[static_cast<void>(stats);]]
       SAYS "A visitor that throws at a record gets it again at each drain, and nothing after it.")

# The user page.
mutant(half_written_page_is_read FILE include/perfkit/detail/user_page.h TEST count_test CASES "[user_page]"
       FROM [[    if ((lock & 1) != 0) continue;
]]
       TO [[]]
       SAYS "While another CPU writes the page, a count is a mixture of the old and the new one.")
mutant(times_of_the_page_swapped FILE include/perfkit/detail/user_page.h TEST count_test CASES "[user_page]"
       FROM [[uint64_t time_enabled, time_running;]] TO [[uint64_t time_running, time_enabled;]]
       SAYS "A multiplexed count that is read in user space seems to be whole, and is too low.")
mutant(bit_before_short_ticks FILE include/perfkit/detail/user_page.h TEST count_test CASES "[user_page]"
       FROM [[kShortTicks = 1 << 5;]] TO [[kShortTicks = 1 << 4;]]
       SAYS "On x86 the times of hardware events stand still between two switches.")
mutant(shared_words_are_read_relaxed FILE include/perfkit/detail/user_page.h TEST ring_test CASES "[ring]"
       FROM [[return __atomic_load_n(&word, __ATOMIC_ACQUIRE);]] TO [[return __atomic_load_n(&word, __ATOMIC_RELAXED);]]
       SURVIVES "x86-64 loads in order: only a machine with weaker ordering can show it"
       SAYS "On arm64 a record is read before the kernel has written it.")

# Counts and scopes.
mutant(begin_on_another_thread_is_no_reason FILE include/perfkit/count.h
       TEST count_test CASES "another thread gets no number*"
       FROM [[if (begin.other_thread || end.other_thread) flags]] TO [[if (end.other_thread) flags]]
       SAYS "A region that begins on another thread has no count, and the reason is not that.")
mutant(scope_begins_anywhere FILE include/perfkit/scope.h TEST count_test CASES "scope totals:*"
       FROM [=[if (begin.other_thread || end.other_thread) [[unlikely]] {]=]
       TO [[if (end.other_thread) {]]
       SAYS "One scope that began on another thread leaves no event of the sum a number.")
mutant(base_of_any_age FILE include/perfkit/count.h TEST count_test CASES "[epoch]"
       FROM [=[  if (age > plan.max_age_ticks) [[unlikely]]
    return false;
]=]
       TO [[]]
       SAYS "The clock of a thread that runs for minutes drifts from the kernel's.")
mutant(epoch_keeps_the_first_cpu FILE src/count/base_renewer.h TEST count_test CASES "[epoch]"
       FROM [[epoch.cpu = __atomic_load_n(plan.cpu, __ATOMIC_RELAXED);]]
       TO [[if (epoch.cpu == Snapshot::kNoCpu) epoch.cpu = __atomic_load_n(plan.cpu, __ATOMIC_RELAXED);]]
       SAYS "A region in which the thread moved to another CPU does not say so.")
mutant(epoch_of_many_events_has_no_switches FILE src/count/source_builder.cc TEST count_test CASES "[epoch]"
       FROM [[plan.epoch_values = static_cast<uint8_t>(size);]] TO [[plan.epoch_values = 4;]]
       SAYS "The switches and migrations of a large set are 0, or old, beyond its fourth event.")
mutant(epoch_ignores_migrations FILE src/count/base_renewer.h TEST count_test CASES "[counter_set],[epoch]"
       FROM [[epoch.values[plan.rings[r].index] = ReadNewestCount(plan.rings[r].ring);]]
       TO [[epoch.values[plan.rings[r].index] = 0;]]
       SAYS "A privileged user's migrations are 0 on the fast path.")
mutant(base_of_a_handler_is_replaced FILE src/count/base_renewer.h TEST count_test CASES "[jump]"
       FROM [[if (is_latest) Commit(]] TO [[if (is_latest || expected != base.version) Commit(]]
       SAYS "A signal handler that reads during the renewal of the base sets the clock ahead by its own time.")
mutant(renewal_in_a_read_is_unseen FILE include/perfkit/count.h TEST count_test CASES "[epoch]"
       FROM [[ && plan.base.version == version && (version & 1) == 0;]] TO [[ && (version & 1) == 0;]]
       SAYS "A read that a signal handler interrupts, which renews the base, has numbers of two epochs.")
mutant(registers_are_plain FILE src/count/source_builder.cc TEST count_test CASES "[user_register]"
       FROM [[ && plan.user_page_count == 0;]] TO [[;]]
       SAYS "Hardware events that are read from registers count nothing.")
mutant(move_alone_is_no_flag FILE include/perfkit/scope.h TEST count_test CASES "scope totals:*"
       FROM [[begin.epoch == end.epoch && begin.cpu == end.cpu &&]] TO [[begin.epoch == end.epoch &&]]
       SAYS "Scopes that ended on another CPU do not say so.")
mutant(slow_read_has_old_switches FILE src/count/source.cc TEST count_test CASES "[refused_read]"
       FROM [[now.values[static_cast<size_t>(__builtin_ctz(left))] = base_.SwitchesNow();]]
       TO [[now.values[static_cast<size_t>(__builtin_ctz(left))] = plan_.epoch.values[static_cast<size_t>(__builtin_ctz(left))];]]
       SAYS "The switch after which the kernel refuses the clock is not counted.")
mutant(half_written_base_is_read FILE include/perfkit/count.h TEST count_test CASES "[epoch],[jump]"
       FROM [[ && plan.base.version == version && (version & 1) == 0;]] TO [[ && plan.base.version == version;]]
       SAYS "A signal handler that interrupts the renewal of the clock's base reads a time from two bases.")
mutant(gaps_beyond_their_number_are_none FILE include/perfkit/count.h TEST count_test CASES "zone tree:*"
       FROM [[ && gaps != kMaxGaps;]] TO [[;]]
       SAYS "After very many gaps in the records, migrations are counted that lack some, and called exact.")

# Zones and tasks.
mutant(zone_stays_open_while_off FILE include/perfkit/frame_counter.h
       TEST count_test CASES "frames: a worker that leaves its zones*"
       FROM [[(enabled_.load(std::memory_order_acquire) || draining()) LeavePlain();]]
       TO [[(enabled_.load(std::memory_order_acquire)) LeavePlain();]]
       SAYS "A worker that was in a zone when counting was switched off keeps its events open.")
mutant(thread_that_is_moved_is_detached FILE include/perfkit/frame_counter.h
       TEST annotations_test CASES "optick: threads have their names*"
       FROM [[impl_(std::move(other.impl_))]] TO [[impl_(other.impl_)]]
       SAYS "Zones of a thread that OPTICK_THREAD names are under 'workers'.")
mutant(plot_of_no_number FILE include/perfkit/detail/tracy_beside.h TEST tracy_beside_test
       FROM [[    if ((frame.record->missing >> i & 1) != 0) continue;
]]
       TO [[]]
       SAYS "Tracy plots 0 for an event that cannot be counted.")
mutant(queue_is_no_wait FILE include/perfkit/task_job.h TEST count_test CASES "task job:*"
       FROM [[    state_->task.Enqueue();
]]
       TO [[]]
       SAYS "The time that a job spends in a queue is not in its wait.")
mutant(coroutine_is_awaited_by_none FILE include/perfkit/task_coroutine.h
       TEST session_test CASES "samples of a coroutine show*"
       FROM [[awaiter_.task().SetAwaiter(task_);]] TO [[static_cast<void>(awaiter_.task());]]
       SAYS "Samples of a coroutine do not show which coroutines await it.")
mutant(task_that_is_replaced_never_ends FILE include/perfkit/task_counter.h TEST count_test CASES "tasks:*"
       FROM [[std::swap(account_, other.account_);]] TO [[account_ = std::exchange(other.account_, nullptr);]]
       SAYS "A program that keeps its tasks in reused slots needs more and more memory, and has no quantiles.")

# Live stacks, events, targets, measurements.
mutant(stack_of_no_event FILE include/perfkit/live_stack.h
       TEST sample_test CASES "an event can be sampled without stacks*"
       FROM [[      stack->event = record.event;
]]
       TO [[]]
       SAYS "A live stack does not say to which event's sample it belongs.")
mutant(stack_without_its_middle_is_complete FILE include/perfkit/stack_frame.h
       TEST unwind_dwarf_test CASES "both ends of a deep stack*"
       FROM [[return end == StackEnd::kRoot && omitted == 0;]] TO [[return end == StackEnd::kRoot;]]
       SAYS "A stack of which thousands of frames were left out is called complete.")
mutant(null_is_a_name FILE include/perfkit/event_type.h TEST event_test CASES "[table]"
       FROM [[text(written != nullptr ? written : "")]] TO [[text(written)]]
       SAYS "A null pointer for the name of an event ends the program instead of being refused.")
mutant(thread_with_its_children FILE include/perfkit/target.h TEST count_test CASES "[target]"
       FROM [[return {Kind::kThread, tid, false};]] TO [[return {Kind::kThread, tid};]]
       SAYS "The counts of one thread contain those of the threads that it starts.")
mutant(subject_throws_into_nothing FILE include/perfkit/measure.h
       TEST measure_test CASES "an exception goes on to the caller*"
       FROM [[  first.Rethrow();
]]
       TO [[]]
       SAYS "Two regions of which the first one throws are compared, and the test does not learn of it.")
