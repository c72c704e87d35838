# Mutants of src/exporters: see run.cmake.
mutant(noise_becomes_a_change FILE src/exporters/html_difference.cc TEST exporters_test CASES "the bounds of intervals*"
       FROM [[return steps != 0 || value == 0 ? steps : value > 0 ? 1 : -1;]] TO [[return steps;]]
       SAYS "The page of a difference shows a change with a narrow interval as noise.")
mutant(ended_zone_is_open FILE src/exporters/open_zones.cc TEST exporters_test CASES "pprof: *"
       FROM [[return at_ns < change.time_ns; });]] TO [[return at_ns <= change.time_ns; });]]
       SAYS "A sample at the end of a zone is labelled with it: -tagfocus=zone counts others' samples.")
mutant(merged_sample_has_a_zone FILE src/exporters/pprof.cc TEST exporters_test CASES "pprof: *"
       FROM [[sample.merged() ? exporters::OpenZones::Open()]] TO [[false ? exporters::OpenZones::Open()]]
       SAYS "A merged sample has the zone of the time 0.")
mutant(zones_that_are_not_named FILE src/exporters/open_zones.cc TEST exporters_test CASES "[pprof]"
       FROM [[if (zones.size() > kMaxTogether) add(]] TO [[if (zones.size() >= kMaxTogether) add(]]
       SAYS "A label says that zones are left out, where none is.")
