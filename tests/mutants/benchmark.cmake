# Mutants of src/benchmark: see run.cmake.
mutant(energy_of_each_thread FILE src/benchmark/adapter/run_sum.cc TEST benchmark_test CASES "energy of the machine*"
       FROM [[t.of_machine ? std::max(]] TO [[false ? std::max(]]
       SAYS "A benchmark of N threads shows N times the energy of the machine.")
mutant(one_column_name_is_one_event FILE src/benchmark/adapter/run_sum.cc TEST benchmark_test CASES "two events of one*"
       FROM [[t.name != tally.name || t.event != tally.event]] TO [[t.name != tally.name]]
       SAYS "An ordinary user who counts page-faults and page-faults:u gets neither.")
mutant(repeated_event_is_counted_twice FILE src/benchmark/adapter/choice.cc TEST benchmark_test
       CASES "an event that is written twice*"
       FROM [[if (!again && !HasEvent(choice, event.name))]] TO [[if (!again)]]
       SAYS "An event that is written twice loses its column.")
mutant(label_of_skipped_run_stays FILE src/benchmark/adapter/wrap.cc TEST benchmark_test
       CASES "the label of a benchmark that is skipped*"
       FROM [[  perfkit_real_error_chars(state, why);
  perfkit::BenchmarkRegion::End();]] TO [[  perfkit_real_error_chars(state, why);]]
       SAYS "A benchmark shows the label of the one before it, which was skipped.")
mutant(long_reason_in_each_row FILE src/benchmark/adapter/head_reasons.cc TEST benchmark_test CASES "the table for people*"
       FROM [[if (reason.size() <= kShort) return reason;]] TO [[if (reason.size() <= 4000) return reason;]]
       SAYS "Each row of a table repeats a remedy that the head has.")
mutant(wrappers_complain FILE src/benchmark/preload/preload.cc TEST benchmark_test CASES "wrappers of a preloaded*"
       FROM [[if (perfkit::preload::HasStaticLibrary()) {]] TO [[if (!perfkit::BenchmarkArgument("--benchmark_").empty()) {]]
       SAYS "env, nice and timeout each say that there are no counters, where there are.")
mutant(own_counter_is_overwritten FILE src/benchmark/adapter/run_sum.cc TEST benchmark_test CASES "a counter of the benchmark's own*"
       FROM [[if (std::ranges::any_of(columns, is_own)) {]] TO [[if (std::ranges::none_of(columns, is_own) && columns.empty()) {]]
       SAYS "A counter that the benchmark computes has the value of an event.")
