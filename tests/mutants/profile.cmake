# Mutants of src/profile: see run.cmake.
mutant(wait_is_counted_twice FILE src/profile/frame_parts.cc TEST profile_test CASES "[slow_frames]"
       FROM [[      at_ns = on_ns;
]]
       TO [[]]
       SAYS "Time off the CPU is time in a zone, too.")
mutant(wait_outlives_its_zone FILE src/profile/frame_parts.cc TEST profile_test CASES "[slow_frames]"
       FROM [[    if (off.to_ns > to_ns) break;
]]
       TO [[]]
       SAYS "A wait ends with the zone that it began in.")
mutant(outer_zone_goes_on FILE src/profile/frame_parts.cc TEST profile_test CASES "[slow_frames]"
       FROM [[while (!open.empty() && open.back().to_ns <= zone->from_ns) leave();]]
       TO [[while (open.size() > 1 && open.back().to_ns <= zone->from_ns) leave();]]
       SAYS "A zone's time goes to the one that was left before it.")
mutant(median_without_zeros FILE src/profile/frame_counts.h TEST profile_test CASES "[slow_frames]"
       FROM [[zeros = count - values.size();]] TO [[zeros = values.size() - values.size();]]
       SAYS "What one frame alone did is usual.")
mutant(rest_is_dropped FILE src/profile/slow_frames.cc TEST profile_test CASES "[slow_frames]"
       FROM [[    slow.rest_ns -= part.excess_ns();
]]
       TO [[]]
       SAYS "What the parts took more than usual does not add up to the frame.")
mutant(kind_has_addresses FILE src/profile/wait_text.cc TEST profile_test CASES "[slow_frames]"
       FROM [[if (!word.starts_with("0x"))]] TO [[if (!word.starts_with("1x"))]]
       SAYS "The usual wait for a lock is the largest excess of each frame, because its address is another one.")
mutant(frames_of_all_kinds FILE src/profile/frame_counts.cc TEST profile_test CASES "[slow_frames]"
       FROM [[return name.substr(0, digits);]] TO [[return name.substr(0, 0);]]
       SURVIVES "not killed yet: takes two loops on one thread"
       SAYS "A frame is compared with those of another loop.")
mutant(fastest_frames_first FILE src/profile/slow_frames.cc TEST profile_test CASES "[slow_frames]"
       FROM [[[](const Candidate& a, const Candidate& b) { return a.excess_ns > b.excess_ns; }]]
       TO [[[](const Candidate& a, const Candidate& b) { return a.excess_ns < b.excess_ns; }]]
       SAYS "The slowest frames are left out.")
mutant(waker_is_not_told FILE src/profile/wait_text.cc TEST profile_test CASES "[wait_text]"
       FROM [[  add("woken by ",]] TO [[  if (text.empty()) add("woken by ",]]
       SAYS "Who ended a wait is told only where nothing else is known.")
mutant(blamed_without_a_trace FILE src/profile/wait_causes.cc TEST profile_test CASES "[causes]"
       FROM [[cause_.kind == Kind::kLock || inverted_ns_ == ns || is_shown) return;]]
       TO [[cause_.kind != Kind::kPreempted) return;]]
       SAYS "A thread that was preempted is said to have kept another one waiting, and that this is known.")
mutant(sleep_is_no_wait_for_a_cpu FILE src/profile/thread_activity.cc TEST profile_test CASES "[causes]"
       FROM [[return wait.waker != 0 ? end_ns : wait.examined_ns;]] TO [[return end_ns + wait.waker;]]
       SAYS "A thread that was woken but got no CPU is said to have slept, and that this is known.")
mutant(half_an_inversion FILE src/profile/wait_causes.cc TEST profile_test CASES "[causes]"
       FROM [[4 * preempted_ns > 3 * ns ? ns : preempted_ns;]] TO [[ns;]]
       SAYS "A thread is not blamed for any of a wait if it was preempted for a quarter of it.")
mutant(neighbour_of_another_waker FILE src/profile/wait_neighbours.cc TEST profile_test CASES "[causes]"
       FROM [[if (!same_thread || (own.kind]] TO [[if ((own.kind]]
       SAYS "A wait that one thread ended is told as one for a lock that another one released.")
mutant(disk_among_locks FILE src/profile/wait_neighbours.cc TEST profile_test CASES "[causes]"
       FROM [[(own.kind == Kind::kIo && !IsOfDisk(first.kind))]] TO [[own.thread != first.thread]]
       SAYS "A wait for a disk is told as one for a lock, because of its neighbours.")
mutant(one_neighbour_is_enough FILE src/profile/wait_neighbours.cc TEST profile_test CASES "[causes]"
       FROM [[if (nearest.size() < kNeeded)]] TO [[if (nearest.empty())]]
       SAYS "All waits of a zone are told as the only one that was examined.")
mutant(task_of_another_stack FILE src/profile/task_roots.cc TEST profile_test CASES "[tasks]"
       FROM [[      if (const std::optional<uint32_t> known = copies_.Find({root, at}); known) {]]
       TO [[      if (const std::optional<uint32_t> known = copies_.Find({0, at}); known) {]]
       SAYS "Equal stacks of one task are many stacks.")
mutant(awaiters_are_no_callers FILE src/profile/task_roots.cc TEST profile_test CASES "[tasks]"
       FROM [[    begin = end + kAwaits.size();]] TO [[    begin = end + kAwaits.size(), calls.clear();]]
       SAYS "A flame graph rooted at tasks does not show which tasks await a task.")
mutant(idle_cpu_of_others_is_throttled FILE src/profile/frame_causes.cc TEST profile_test CASES "[causes]"
       FROM [[wait.preempter.tid == 0 && wait.preempter.others == 0;]] TO [[wait.preempter.tid == 0;]]
       SAYS "A CPU quota is told as known although other threads ran on the CPU meanwhile.")
mutant(stolen_before_the_frame FILE src/profile/stolen_time.cc TEST session_test CASES "[stolen_times]"
       FROM [[counter.points[i - 1].time_ns >= frame.from_ns && ]] TO [[]]
       SAYS "What the machine took before a frame is told as a cause of the frame.")
mutant(only_reference_is_none FILE src/profile/frame_cut.cc TEST profile_test CASES "[frame_cut]"
       FROM [[zone_.is_reference || !references.empty();]] TO [[!references.empty();]]
       SAYS "A frame that is the only reference is shown beside frames that it was not compared with.")
mutant(each_timeout_is_a_kind FILE src/profile/wait_text.cc TEST profile_test CASES "[wait_text]"
       FROM [[= sys::WithoutTimeout(whole);]] TO [[= whole;]]
       SAYS "Sleeps of 2.1 and 2.2 ms are different parts of a frame.")
mutant(share_of_nothing_is_zero FILE src/profile/difference_report.cc TEST profile_test CASES "an empty profile tells nothing"
       FROM [[return difference_.per_iteration || side.weight != 0;]] TO [[return difference_.per_iteration || side.weight + 1 != 0;]]
       SAYS "The report of a difference with an empty profile says that its functions took 0 % there.")
mutant(children_of_others FILE src/profile/writer.cc TEST profile_test CASES "a difference whose nodes are no tree*"
       FROM [[is_whole = child > i && child]] TO [[is_whole = child == UINT64_MAX || child]]
       SAYS "The text of a difference is read from outside of its nodes, or has no end.")
mutant(faults_of_all_threads FILE src/profile/faulted_memory.cc TEST profile_test CASES "[faults]"
       FROM [[if (sample.thread == frame.thread && kinds]] TO [[if (kinds]]
       SAYS "A frame has the page faults of other threads.")
mutant(grown_mappings_are_several FILE src/profile/faulted_memory.cc TEST profile_test CASES "[faults]"
       FROM [[next.from >= to) break;]] TO [[next.from >= at(most).from) break;]]
       SAYS "The faults in a mapping that grows are spread over its sizes.")
mutant(waker_is_where_it_ran FILE src/profile/wait_causes.cc TEST profile_test CASES "[wakers]"
       FROM [[      cause_.thread_stack = sample->stack;
]]
       TO [[]]
       SAYS "A waker is told where it was most of the time, not where it ended the wait.")
mutant(twins_are_merged_twice FILE src/profile/merge_tables.cc TEST profile_test CASES "[unique_strings]"
       FROM [[    profile::MakeStringsUnique(to_);
]]
       TO [[]]
       SAYS "Merged with itself, a session's profile has zones twice.")
mutant(cut_frames_are_whole FILE src/profile/filter.cc TEST profile_test CASES "[filter]"
       FROM [[zone.from_ns < filter.from_ns || zone.to_ns > filter.to_ns) zone.is_whole]] TO [[false) zone.is_whole]]
       SAYS "A frame that a filter has cut is explained by the half that is left.")
mutant(frames_without_their_samples_are_whole FILE src/profile/filter.cc TEST profile_test CASES "[filter]"
       FROM [[if (lacks_samples || ]] TO [[if (]]
       SAYS "A frame whose waits a filter has removed was taken by the machine.")
mutant(kinds_of_faults_vanish FILE src/profile/faulted_memory.cc TEST profile_test CASES "[faults]"
       FROM [[return all_.faults.faults != 0 && ]] TO [[return ]]
       SAYS "Minor faults are not told if another profile sampled all faults.")
mutant(merged_profiles_have_one_clock FILE src/profile/frame_counts.cc TEST profile_test CASES "[frames]"
       FROM [[[&](size_t clock) { return sampled[clock]; });]] TO [[[&](size_t clock) { return sampled[clock] || true; });]]
       SAYS "A frame that worked is time without samples, because another profile came first.")
mutant(counts_of_other_processes FILE src/profile/frame_counts.cc TEST profile_test CASES "[frames]"
       FROM [[[event](uint16_t one) { return one == event; })) continue;]] TO [[[event](uint16_t one) { return one == event; }) && false) continue;]]
       SAYS "A merged profile has a count of 0 for an event that its frame's process did not sample.")
mutant(frames_in_part_are_two FILE src/profile/merge_tables.cc TEST profile_test CASES "[merge]"
       FROM [[zone.name << zone.is_frame).Take();]] TO [[zone.name << zone.is_frame << zone.is_whole).Take();]]
       SAYS "Two filtered copies of a profile have twice its frames.")
mutant(whole_in_both FILE src/profile/merge_tables.cc TEST profile_test CASES "[merge]"
       FROM [[to.is_whole = to.is_whole || from.is_whole;]] TO [[to.is_whole = to.is_whole && from.is_whole;]]
       SAYS "A frame that a profile has is left out, because a part of it is merged into it.")
mutant(what_is_known_of_frames_is_dropped FILE src/profile/merge_tables.cc TEST profile_test CASES "[merge]"
       FROM [[if (to.*text == 0) to.*text = from.*text;]] TO [[if (to.*text == 1) to.*text = from.*text;]]
       SAYS "Why a frame was kept is lost if the other profile does not know it.")
mutant(unnamed_code_is_its_location FILE src/profile/function_index.cc TEST profile_test CASES "[difference]"
       FROM [[uint64_t{location.module} << 1 | kernel, location.address}]]
       TO [[uint64_t{location.module} << 1 | kernel, frame.location}]]
       SAYS "One address is two functions in a difference, one that came and one that went.")
mutant(weights_overflow FILE src/profile/profile.cc TEST profile_test CASES "[profile]"
       FROM [[if (sample.weight > UINT64_MAX - total)]] TO [[if (sample.weight == UINT64_MAX - total)]]
       SAYS "The total of an event is a small number, because it is more than 2^64.")
