// A program with a flow graph and a parallel_for of TBB that knows nothing of perfkit.
//
// Prints how often the bodies ran, how many pages they have touched, and the page faults of the whole process.
#include <cstdio>

#include "tests/itt/graph.h"

int main() {
  const perfkit::testing::GraphRun run = perfkit::testing::RunGraph();
  std::printf("%lu %zu %ld\n", run.bodies, run.pages, perfkit::testing::ProcessFaults());
  return run.rounds == 1000 ? 0 : 1;
}
