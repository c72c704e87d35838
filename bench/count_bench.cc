// The cost of counting, beside other ways to count, in one process: run it with --benchmark_enable_random_interleaving.
// The names of the cases are a contract; check_bars compares them with their bars.
//
//   floor_cases.cc   lower bounds                  scope_cases.cc    a region of code
//   read_cases.cc    one event, one system call    frame_cases.cc    frames and zones
//   threads_cases.cc 256 threads at once           switch_cases.cc   the cost for the counted threads
//   task_cases.cc    switches of tasks
//
// Each case opens its own events and closes them at its end, so that none pays for another's.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

int main(int argc, char** argv) {
  // Threads256/raw has 1024 descriptors, which is a common soft limit.
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
