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
