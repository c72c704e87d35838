# Mutants of src/count/frame, and of the tick rate that turns its ticks into nanoseconds: see run.cmake.
mutant(hitch_blames_earlier_frames FILE src/count/frame/frame_counter_impl.cc TEST count_test CASES "hitches:*"
       FROM [[    return ExplainHitch();
  hitches_.BeginFrame();]]
       TO [[    return ExplainHitch();]]
       SAYS "A hitch is blamed on the switches and faults of all frames since the last hitch.")
mutant(callback_in_no_frame FILE src/count/frame/frame_counter_impl.cc TEST count_test CASES "hitches:*"
       FROM [[  hitches_.BeginFrame();
  LogHitch(hitch);
  hitches_.Tell(hitch);]]
       TO [[  LogHitch(hitch);
  hitches_.Tell(hitch);
  hitches_.BeginFrame();]]
       SAYS "What a hitch's callback waits for is in no frame: the next hitch says that it ran all the time.")
mutant(other_kind_added_up FILE src/count/frame/event_plan.cc TEST count_test CASES "a thread with other rights*"
       FROM [[return source.KindOf(i) == kinds_[i] &&]] TO [[return]]
       SAYS "A worker that may count user space only has a number that says it is of all faults.")
mutant(worker_frames_never_roll FILE src/count/frame/frame_counter_impl.cc TEST count_test CASES "frames:*"
       FROM [[  if (!thread.open() || thread.frame != frame) {
    const std::lock_guard<std::mutex> lock(thread.mutex);
    if (!thread.own_frames) thread.Roll(ns_per_tick_q32_);]]
       TO [[  if (!thread.open() || thread.frame != frame) {
    const std::lock_guard<std::mutex> lock(thread.mutex);]]
       SAYS "All work of a worker is one frame: its median is the sum of all frames.")
mutant(torn_slot_reads FILE src/count/frame/slot_table.cc TEST count_test CASES "slots:*"
       FROM [[if (Atomic(at[0]).load(std::memory_order_relaxed) == version) return true;]] TO [[return true;]]
       SAYS "A total contains half of one publication and half of the next.")
mutant(slots_never_released FILE src/count/frame/frame_counter_impl_cold.cc TEST count_test CASES "frames:*"
       FROM [[  thread.slot.Release();
  ended_.Add]]
       TO [[  ended_.Add]]
       SAYS "After max_threads threads, one after the other, each new thread is refused.")
mutant(missing_at_the_begin FILE src/count/frame/counted_events.cc TEST count_test CASES "zone tree:*"
       FROM [[missing |= MissingBetween(begin, end);]] TO [[missing |= MissingBetween(end, end);]]
       SAYS "A zone whose first reading failed reports a number.")
mutant(usual_zone_taken_for_rare FILE src/count/frame/hitch_watch.cc TEST count_test CASES "worst zone:*"
       FROM [[2 * tree.frames(node) < tree.frames(ZoneTree::kRoot)]] TO [[tree.frames(node) < tree.frames(ZoneTree::kRoot)]]
       SAYS "A zone that most frames have is blamed with all of its time instead of its excess.")
mutant(ran_itself_counts_time_away FILE src/count/frame/hitch_watch.cc TEST count_test CASES "cause:*"
       FROM [[text.AddMs(hitch->wall_ns - off_cpu_ns);]] TO [[text.AddMs(hitch->wall_ns);]]
       SAYS "The sentence says that a frame ran while it was preempted.")
mutant(overwritten_record_believed FILE src/count/frame/detail_ring.cc TEST count_test CASES "rings:*"
       FROM [[  if (position + sizeof(record) - ring.Head() > ring.data.size()) return std::nullopt;
]]
       TO [[]]
       SAYS "A fault of a later frame is reported as one of this frame.")
mutant(calibrated_over_no_time FILE src/count/tick_rate.cc TEST count_test CASES "tick rate:*"
       FROM [[constexpr uint64_t kApartNs = 10 * kMillisecondNs;]] TO [[constexpr uint64_t kApartNs = 0 * kMillisecondNs;]]
       SURVIVES "not killed each time: both clocks may be steady enough over the 64 pairs of each end"
       SAYS "Wall times are wrong by several per cent if the kernel does not tell the rate of ticks.")
mutant(dropped_zone_pops_the_abandoned FILE src/count/frame/zone_stack.h TEST count_test CASES "zone tree:*,frames: a zone*"
       FROM [[return skipped_ == 0 && top_->abandoned;]] TO [[return top_->abandoned;]]
       SURVIVES "nothing is counted in between: as long as a dropped zone is open, each zone that is entered is dropped"
       SAYS "A zone left elsewhere is removed from below an open zone that was dropped for its depth.")
mutant(missing_at_the_last_mark FILE src/count/frame/zone_tree.cc TEST count_test CASES "zone tree:*"
       FROM [[record.missing = events_.never() | events_.MissingBetween(frame.begin, frame.end);]] TO [[record.missing = events_.never() | events_.MissingBetween(frame.begin, frame.begin);]]
       SAYS "A frame whose last reading failed reports a number.")
mutant(missing_not_published FILE src/count/frame/slot_table.cc TEST count_test CASES "slots:*"
       FROM [[    *missing |= static_cast<uint32_t>(copy[0]);]] TO [[    *missing = static_cast<uint32_t>(copy[0]);]]
       SAYS "A total over threads is reported as whole although a thread's event could not be counted.")
mutant(missing_is_forgotten FILE src/count/frame/slot_table.cc TEST count_test CASES "slots:*"
       FROM [[.load(std::memory_order_relaxed) | missing;]] TO [[.load(std::memory_order_relaxed) * 0 | missing;]]
       SAYS "A sum that lacked a part is reported as whole after the next publication.")
mutant(copy_in_use_is_overwritten FILE src/count/frame/slot_table.cc TEST count_test CASES "slots:*"
       FROM [[(~version & 1)]] TO [[(version & 1)]]
       SAYS "Readers see half-written sums.")
mutant(slot_version_stored_first FILE src/count/frame/slot_table.cc TEST count_test CASES "slots:*"
       FROM [[  Atomic(next[0]).store(sticky, std::memory_order_release);
]]
       TO [[  Atomic(at[0]).store(version + 1, std::memory_order_release);
  Atomic(next[0]).store(sticky, std::memory_order_release);
]]
       SAYS "A slot's new version is visible before its words: a total is torn.")
mutant(claimed_twice FILE src/count/frame/slot_table.cc TEST count_test CASES "slots:*"
       FROM [[if (!taken_[slot].compare_exchange_strong(expected, true, std::memory_order_acquire)) continue;]]
       TO [[if (taken_[slot].load(std::memory_order_acquire) != expected) continue;
    taken_[slot].store(!expected, std::memory_order_release);]]
       SURVIVES "not killed yet: two threads must claim at the same instant"
       SAYS "Two threads get one slot, and one overwrites the other's sums.")
mutant(published_count_starts_again FILE src/count/frame/slot_writer.h TEST count_test CASES "thread slots:*"
       FROM [[offset_[w] = published[w] - words_[w];]] TO [[offset_[w] = 0 - words_[w];]]
       SAYS "A total goes back when counting is switched off and on.")
mutant(rate_of_a_switch FILE src/count/frame/detail_ring.cc TEST count_test CASES "switches:*"
       FROM [[++(preempted ? tally->preemptions : tally->waits);]] TO [[++(preempted ? tally->waits : tally->preemptions);]]
       SAYS "A frame that slept is reported as preempted.")
mutant(cut_not_told FILE src/count/frame/detail_ring.cc TEST count_test CASES "switches:*"
       FROM [[  tally.at_least = stretch.cut;
  SwitchPairs]]
       TO [[  SwitchPairs]]
       SAYS "Overwritten switches are left out without a word.")
mutant(fault_count_is_bytes FILE src/count/frame/detail_ring.cc TEST count_test CASES "faults:*"
       FROM [[tally.faults = now.count - from.count;]] TO [[tally.faults = (from.head - now.head) / kFaultRecordBytes;]]
       SAYS "A late frame has several times too many faults while another sampler takes stacks of them.")
mutant(first_cpu_is_a_migration FILE src/count/frame/detail_ring.cc TEST count_test CASES "switches:*"
       FROM [[if (cpu_ && *cpu_ != record.cpu)]] TO [[if (!cpu_ || *cpu_ != record.cpu)]]
       SAYS "Each hitch with a switch reports a migration too many.")
mutant(unmatched_switch_in FILE src/count/frame/detail_ring.cc TEST count_test CASES "switches:*,rings:*"
       FROM [[    if (!pending_) {
      tally->at_least = true;
      return;]]
       TO [[    if (!pending_) {
      return;]]
       SAYS "A time away whose begin was overwritten is left out without a word.")
mutant(away_without_clock FILE src/count/frame/hitch_watch.cc TEST count_test CASES "hitches: without a log*"
       FROM [[event.has_value() && (inexact >> *event & 1) == 0;]] TO [[event.has_value() && inexact != ~0u;]]
       SAYS "An event without a number is told as 0: the frame seems to have been away all the time.")
mutant(child_frames_of_last_time FILE src/count/frame/hitch_watch.cc TEST count_test CASES "worst zone:*"
       FROM [[if (last.number != frame ||]] TO [[if (last.number > frame ||]]
       SAYS "A zone that the frame did not have is blamed for it.")
mutant(milliseconds_in_tenths FILE src/count/frame/hitch_watch.cc TEST count_test CASES "cause:*"
       FROM [[(ns + 5'000) / 10'000;]] TO [[(ns + 5'000) / 100'000;]]
       SAYS "Times in a hitch's sentence are a tenth of what they were.")
mutant(ticks_are_nanoseconds FILE include/perfkit/detail/user_page.h TEST count_test CASES "frames: clocks of a frame*"
       FROM [[return static_cast<uint64_t>(Product{ticks} * ns_per_tick_q32 >> 32);]]
       TO [[return static_cast<uint64_t>(Product{ticks} * ns_per_tick_q32 >> 31);]]
       SAYS "All times by ticks are twice too long.")
mutant(mark_forgets_open_zones FILE src/count/frame/zone_tree.cc TEST count_test CASES "zone tree:*"
       FROM [[if (stack_.has_counted()) SplitOpen(at);]] TO [[if (stack_.counted() > 1) SplitOpen(at);]]
       SAYS "A zone that is open across a mark has all of its time in the second frame.")
mutant(raised_without_children_missing FILE src/count/frame/counted_events.cc TEST count_test CASES "zone tree:*"
       FROM [[sums.missing |= other.missing;]] TO [[sums.missing |= 0;]]
       SAYS "A zone left elsewhere is reported as whole although a zone below it lacks an event.")
mutant(times_of_merged_sums_swapped FILE src/count/frame/counted_events.cc TEST count_test CASES "zone merge:*,zone tree:*,frames:*"
       FROM [[times[i].running_ns += other.times[i].running_ns;]] TO [[times[i].running_ns += other.times[i].enabled_ns;]]
       SAYS "Multiplexed counts of several threads are reported as if the events had run all the time.")
mutant(outer_zone_ends_with_a_number FILE src/count/frame/frame_counter_impl.cc TEST count_test CASES "zone ends:*"
       FROM [[FindBinding(this) == thread && thread->tree.IsTop(zone.entry_);]]
       TO [[FindBinding(this) == thread && zone.entry_ != 0;]]
       SAYS "A zone that ends before one inside of it reports the counts of that one.")
mutant(run_of_a_destroyed_counter_is_ended FILE src/count/frame/annotations.cc TEST annotations_test CASES "runs:*"
       FROM [[return run.of->is_alive(); });]] TO [[return run.of != nullptr; });]]
       SAYS "An end of Tracy's frames touches a FrameCounter that is destroyed.")
mutant(uncounted_run_ends_another FILE src/count/frame/annotations.cc TEST annotations_test CASES "runs:*"
       FROM [[if (outer != nullptr) ++outer->uncounted;]] TO [[]]
       SAYS "The end of a run that began while annotations paused ends an outer one of its name.")
mutant(leave_is_that_of_the_counter_in_use FILE src/count/frame/annotations.cc TEST annotations_test CASES "annotated Enter*"
       FROM [[if (of != nullptr && (of == Now() || of->is_alive())) of->frames->Leave();]]
       TO [[if (Now() != nullptr && of != nullptr) Now()->frames->Leave();]]
       SAYS "OPTICK_POP leaves a zone of another FrameCounter than OPTICK_PUSH entered.")
mutant(enter_while_paused_is_left FILE src/count/frame/annotations.cc TEST annotations_test CASES "annotated Enter*"
       FROM [[entered.of[entered.depth - 1] = is_counted ? now : nullptr;]] TO [[entered.of[entered.depth - 1] = now;]]
       SAYS "OPTICK_POP leaves a zone that is not its own if OPTICK_PUSH was called while counting was disabled.")
mutant(all_frames_are_main_frames FILE src/count/frame/annotations.cc TEST annotations_test CASES "optick:*"
       FROM [[if (type.empty() || type == "CPU") return MarkAnnotated();]] TO [[if (type != "none") return MarkAnnotated();]]
       SAYS "Frames of the render thread are marks of the main loop, on a wrong thread.")
mutant(zone_of_an_ended_thread_is_own FILE src/count/frame/frame_counter_impl.cc TEST count_test CASES "cross-thread zones:*"
       FROM [[  if (entry != 0 && FrameThread::SerialOf(entry) != thread.serial) return LeaveElsewhere(entry);
]]
       TO [[]]
       SAYS "Zones that end on another thread than they began on are not counted as such if their thread has ended.")
mutant(cut_frame_of_a_sequence_stays FILE src/count/frame/frame_thread.cc TEST count_test CASES "frames:*"
       FROM [[    tree.DropFrame();]] TO [[    (void)0;]]
       SAYS "Zones of a sequence's frame that switching off has cut are in the next one, and larger than their root.")
mutant(thread_without_an_end FILE src/count/frame/frame_counter_impl_cold.cc TEST count_test CASES "each thread's log*"
       FROM [[  thread.EndLog(end_ticks);]] TO [[  if (end_ticks != 0) thread.EndLog(end_ticks);]]
       SAYS "A kept profile waits for ever for a thread that ended while counting was off.")
mutant(binding_cache_is_read_twice FILE src/count/frame/thread_binding.h TEST count_test CASES "binding:*"
       FROM [[? cached->state : FindBindingSlow(instance);]]
       TO [[? binding_cache.load(std::memory_order_relaxed)->state : FindBindingSlow(instance);]]
       SAYS "A zone in a signal handler that uses another FrameCounter makes a zone go to that one's thread.")
mutant(last_binding_is_read_twice FILE src/count/frame/thread_binding.h TEST count_test CASES "binding:*"
       FROM [[? cached->state : nullptr;]] TO [[? binding_cache.load(std::memory_order_relaxed)->state : nullptr;]]
       SAYS "A zone in a signal handler that uses another FrameCounter makes the next zone go to that one's thread.")
mutant(latest_value_in_no_maximum FILE src/count/frame/zone_histogram.h TEST count_test CASES "histogram:*"
       FROM [[return run_ != 0 ? std::max(max_, last_value_) : max_;]] TO [[return max_;]]
       SAYS "The longest time of a zone is not the maximum until a frame with another time has come.")
mutant(deep_zones_forget_their_begin FILE src/count/frame/zone_stack.h TEST count_test CASES "zone tree:*"
       FROM [[std::copy_n(frame_, open + 1, larger);]] TO [[std::copy_n(frame_, size_t{1}, larger);]]
       SAYS "A thread that nests zones deeper than before loses or falsifies those that are open.")
mutant(read_of_results_is_not_at_work FILE src/count/frame/frame_counter_impl.cc TEST count_test CASES "frames: a zone of a handler*"
       FROM [[  const FrameThread::Work work(*main_);
  SettleAtWork();]]
       TO [[  SettleAtWork();]]
       SAYS "A zone in a handler that interrupts a read of the results gets the memory of a distribution.")
mutant(name_is_copied_for_no_zone FILE src/count/frame/zone_tree.cc TEST count_test CASES "zone tree: a zone that is dropped*"
       FROM [[  if (!nodes_.MakeRoom(memory_)) return nullptr;
]]
       TO [[]]
       SAYS "A zone for which there is no memory takes more at each visit.")
mutant(rights_of_each_thread FILE src/count/frame/event_plan.cc TEST count_test CASES "frames: the first zone of a further*"
       FROM [[Open(test_each_, migrations_by_records_)]] TO [[Open(test_each_, std::nullopt)]]
       SAYS "The first zone of each thread takes twice as long, for files that are needed after a refusal only.")
mutant(later_threads_need_no_reason FILE src/count/frame/event_plan.cc TEST count_test CASES "a report says why*"
       FROM [[SetLaterReason(i, source.ok() ? (*source)->ReasonOf(i) : source.status());]] TO [[]]
       SAYS "A report doesn't say why an event has no number on some threads.")
