// The cost of perfkit::locks for a program's mutexes: this program links it, so all of its locks are interposed; the
// bare ones are the C library's functions, looked up. Run it with --benchmark_enable_random_interleaving.
#include <benchmark/benchmark.h>

BENCHMARK_MAIN();
