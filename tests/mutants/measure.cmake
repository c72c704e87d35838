# Mutants of src/measure: see run.cmake.
mutant(upper_median FILE src/measure/statistics.h TEST measure_test CASES "[statistics]"
       FROM [[(values.size() - 1) / 2);]] TO [[(values.size()) / 2);]]
       SAYS "The median of an even number of values is the upper one, and of one value is none.")
mutant(interval_of_90_percent FILE src/measure/statistics.h TEST measure_test CASES "[statistics]"
       FROM [[if (2 * (below + weight) > 0.05) break;]] TO [[if ((below + weight) > 0.05) break;]]
       SAYS "An interval of 95 % holds the median in 90 % of runs: tests fail without a cause.")
mutant(interval_not_symmetric FILE src/measure/statistics.h TEST measure_test CASES "[statistics]"
       FROM [[values[values.size() - 1 - out])};]] TO [[values[values.size() - 1])};]]
       SAYS "One outlier stretches the interval.")
mutant(aliased_allocator_counts_twice FILE src/measure/take.cc TEST measure_test
       CASES "an allocation by a function of two names counts once"
       FROM [[if (code == nullptr || std::]] TO [[if (code != nullptr || std::]]
       SAYS "aligned_alloc and over-aligned new count as two allocations, as glibc's memalign has the same address.")
