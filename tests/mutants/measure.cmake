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

# The stepper.
mutant(small_alternate_stack FILE src/sys/signals.cc TEST step_test CASES "an alternate signal stack that is too small*"
       FROM [[return stack.ss_size >= frame + kHandlers;]] TO [[return stack.ss_size >= 2048;]]
       SAYS "Stepping on a thread with a small alternate signal stack ends the program by SIGSEGV.")
mutant(largest_budget_wraps FILE src/step/stepper.cc TEST step_test CASES "limits may be as large as their type"
       FROM [[const uint64_t budget = AddSaturating(options.budget, constant);]]
       TO [[const uint64_t budget = options.budget + constant;]]
       SAYS "A budget without a limit ends after a few steps.")
mutant(largest_cpu_limit_wraps FILE src/step/stepper.cc TEST step_test CASES "limits may be as large as their type"
       FROM [[AddSaturating(sys::HandlerNow(CLOCK_THREAD_CPUTIME_ID), options.cpu_limit_ns);]]
       TO [[sys::HandlerNow(CLOCK_THREAD_CPUTIME_ID) + options.cpu_limit_ns;]]
       SAYS "A limit of CPU time beyond any need ends the region at once.")
