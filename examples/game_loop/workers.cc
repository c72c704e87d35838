// Sets up TBB's threads, and what happens on each when it joins the arena and when it leaves.
#include "workers.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>

namespace game {
namespace {

// All cores but the main thread's, and at least two workers, so that there is something to see on a small machine.
size_t Parallelism() { return std::max(std::thread::hardware_concurrency(), 3u); }

}  // namespace

Workers::Workers(perfkit::FrameCounter& frames)
    : parallelism_(tbb::global_control::max_allowed_parallelism, Parallelism()),
      arena_(static_cast<int>(Parallelism())),
      observer_(arena_, frames) {
  observer_.observe(true);
}

Workers::~Workers() {
  arena_.terminate();
  if (!tbb::finalize(scheduler_, std::nothrow)) std::fputs("game_loop: TBB's workers do not end\n", stderr);
  observer_.observe(false);
}

Workers::Observer::Observer(tbb::task_arena& arena, perfkit::FrameCounter& frames)
    : tbb::task_scheduler_observer(arena), frames_(frames) {}

void Workers::Observer::on_scheduler_entry(bool is_worker) {
  if (!is_worker) return;  // the main thread marks the frames, and is counted anyway
  thread_local std::optional<perfkit::FrameCounter::AttachedThread> attached;
  if (!attached) attached.emplace(frames_.AttachThread("worker " + std::to_string(++attached_)));
  frames_.Enter(perfkit::ZoneId{"in the arena"});
}

void Workers::Observer::on_scheduler_exit(bool is_worker) {
  if (is_worker) frames_.Leave();
}

}  // namespace game
