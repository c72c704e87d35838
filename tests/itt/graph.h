// A flow graph of TBB, and a parallel_for: TBB has the annotations.
#pragma once

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/parallel_for.h>

#include <atomic>
#include <cstddef>

#include "tests/support/work.h"

namespace perfkit::testing {

struct GraphRun {
  unsigned long bodies = 0;  // How often the bodies ran.
  size_t pages = 0;          // What they have touched.
  unsigned long rounds = 0;  // Of the parallel_for.
};

inline GraphRun RunGraph() {
  constexpr int kMessages = 200;
  constexpr size_t kPagesEach = 16;
  FreshPages pages(kMessages * kPagesEach);
  std::atomic<unsigned long> bodies{0};
  tbb::flow::graph graph;
  tbb::flow::function_node<int, int> touch(graph, tbb::flow::unlimited, [&](int message) {
    pages.Touch(static_cast<size_t>(message) * kPagesEach, kPagesEach);
    ++bodies;
    return message;
  });
  tbb::flow::function_node<int, int> count(graph, tbb::flow::serial, [&](int message) {
    ++bodies;
    return message;
  });
  tbb::flow::make_edge(touch, count);
  for (int message = 0; message < kMessages; ++message) touch.try_put(message);
  graph.wait_for_all();
  std::atomic<unsigned long> rounds{0};
  tbb::parallel_for(0, 1000, [&](int) { ++rounds; });
  return {bodies, pages.pages(), rounds};
}

// Page faults of the whole process.
inline long ProcessFaults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

}  // namespace perfkit::testing
