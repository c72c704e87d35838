// TBB's workers, watched from outside: each is attached to a FrameCounter when it first takes part, and is in the zone
// "in the arena" while it looks for tasks or runs them. No task knows of it.
#pragma once

#include <perfkit/frame_counter.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_scheduler_observer.h>

#include <atomic>
#include <utility>

namespace game {

// Create it before the first parallel loop. Its end waits until all workers have ended, as a FrameCounter wants no open
// zone when it dies. One a process.
class Workers {
 public:
  explicit Workers(perfkit::FrameCounter& frames);
  ~Workers();

  // Runs `work` on the calling thread; its parallel loops use the workers as well.
  template <class Work>
  void Run(Work&& work) {
    arena_.execute(std::forward<Work>(work));
  }

 private:
  // Called by TBB on each thread that joins or leaves the arena.
  class Observer : public tbb::task_scheduler_observer {
   public:
    Observer(tbb::task_arena& arena, perfkit::FrameCounter& frames);
    void on_scheduler_entry(bool is_worker) override;
    void on_scheduler_exit(bool is_worker) override;

   private:
    perfkit::FrameCounter& frames_;
    std::atomic<int> attached_{0};
  };

  tbb::task_scheduler_handle scheduler_{tbb::attach{}};
  tbb::global_control parallelism_;
  tbb::task_arena arena_;
  Observer observer_;
};

}  // namespace game
