# Mutants of src/testing: see run.cmake.
mutant(foreign_numbers_are_compared FILE src/testing/matchers/baseline.cc TEST testing_test
       FROM [[return cost.steady() ? cost.read_path :]] TO [[return !cost.read_path.empty() ? cost.read_path :]]
       SAYS "Noisy numbers of another machine's baseline fail a test.")
mutant(tolerance_is_a_fraction FILE src/testing/matchers/baseline.cc TEST testing_test
       FROM [[std::abs(was) * tolerance.value / 100;]] TO [[std::abs(was) * tolerance.value / 10;]]
       SAYS "A regression of ten times the tolerance passes.")
mutant(improvement_passes FILE src/testing/matchers/baseline.cc TEST testing_test
       FROM [[if (now.low >= was - margin && now.high <= was + margin)]] TO [[if (now.high <= was + margin)]]
       SAYS "A measurement that lost most of its work is never noticed.")
mutant(unreadable_baseline_is_overwritten FILE src/testing/matchers/baseline_file.cc TEST testing_test
       FROM [[if (!baselines.ok()) return baselines.status();]]
       TO [[if (!baselines.ok()) baselines = Baselines{};]]
       SAYS "A baseline with a typing error loses all its entries.")
mutant(other_entries_are_dropped FILE src/testing/matchers/baseline_file.cc TEST testing_test
       FROM [[  if (fine && reader.AtEnd()) return baselines;]] TO [[  if (fine) return baselines;]]
       SAYS "Text after the end of a baseline, such as a merge conflict, is dropped without a word.")
mutant(noise_is_a_failure FILE src/testing/matchers/judge.cc TEST testing_test
       FROM [[if (apart || cost->steady()) return Decide(false, why);]] TO [[if (!apart || cost->steady()) return Decide(false, why);]]
       SAYS "A noisy measurement that straddles its limit fails a test.")
mutant(straddling_ratio_is_skipped FILE src/testing/matchers/judge.cc TEST testing_test
       FROM [[if (ratio->low > factor || ours->steady()) return Decide(false, why);]] TO [[if (ratio->low > factor) return Decide(false, why);]]
       SAYS "An exact ratio that straddles its factor is skipped instead of failing.")
mutant(failed_allocations_have_bytes FILE src/testing/alloc/hooks.cc TEST testing_test CASES "[allocations]"
       FROM [[  if (memory != nullptr) t_bytes += size;
  return memory;]]
       TO [[  t_bytes += size;
  return memory;]]
       SAYS "An allocation that failed adds the bytes that it did not get.")
mutant(calloc_counts_one_element FILE src/testing/alloc/hooks.cc TEST testing_test CASES "[allocations]"
       FROM [[__libc_calloc, count * size, count, size)]] TO [[__libc_calloc, size, count, size)]]
       SAYS "Of arrays that calloc makes, only one element is in the bytes.")
mutant(skip_names_our_header FILE include/perfkit/testing.h TEST testing_test CASES "Catch2: unmeasurable warns*"
       FROM [[::Catch::SourceLineInfo(at.file, static_cast<size_t>(at.line)),]] TO [[CATCH_INTERNAL_LINEINFO,]]
       SAYS "A skip names a line of perfkit's header, not that of the test.")
mutant(clock_without_unit FILE src/measure/cost.cc TEST testing_test CASES "numbers of clocks have their unit*"
       FROM [[(ClassOf(event) == EventClass::kTime ? " ns" : "")]] TO [[""]]
       SAYS "A limit on a clock does not say in what unit it is.")
