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
