// Whole stacks of threads that wait in known ways, with their names.
#include "perfkit/blocked_threads.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/session/planted_threads.h"
#include "tests/support/work.h"

namespace perfkit::session {
namespace {

bool CallsFunction(const ThreadStatus& look, const std::string& name) {
  return std::any_of(look.calls.begin(), look.calls.end(),
                     [&](const ThreadStatus::Call& call) { return call.function.find(name) != std::string::npos; });
}

TEST_CASE("the stack of each thread that waits is whole, and named", "[blocked_threads][waits][law]") {
  PlantedThreads planted;
  for (const PlantedThreads::Planted& thread : planted.planted()) {
    INFO(thread.name);
    while (thread.tid == 0) std::this_thread::yield();
    ThreadStatus last;
    while (!last.blocked || !last.wait.starts_with(thread.wait)) {
      const absl::StatusOr<std::vector<ThreadStatus>> threads = BlockedThreads();
      REQUIRE(threads.status() == absl::OkStatus());
      for (const ThreadStatus& look : *threads) {
        if (look.tid == static_cast<uint32_t>(thread.tid)) last = look;
      }
    }
    INFO(FormatBlockedThreads(std::span(&last, 1)));
    CHECK(last.missing.empty() == (last.end == StackEnd::kRoot));
    // Of a blocked thread only sp and pc are known: a walk ends at a frame that is found by its frame pointer, and a
    // sanitizer's build has such frames.
    if (!testing::kSanitized) CHECK(last.end == StackEnd::kRoot);
    if (last.end == StackEnd::kRoot) CHECK(CallsFunction(last, std::string("PlantedThreads::") + thread.function));
    CHECK(last.calls.back().frame + 1 == last.frames.size());
  }
}

}  // namespace
}  // namespace perfkit::session
