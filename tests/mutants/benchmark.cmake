# Mutants of src/benchmark: see run.cmake.
mutant(energy_of_each_thread FILE src/benchmark/adapter/run_sum.cc TEST benchmark_test CASES "energy of the machine*"
       FROM [[t.of_machine ? std::max(]] TO [[false ? std::max(]]
       SAYS "A benchmark of N threads shows N times the energy of the machine.")
