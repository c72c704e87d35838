// TBB's threads in tests: how many, and when they have ended.
#pragma once

#include <oneapi/tbb/global_control.h>

#include <cstddef>

namespace perfkit {

// Lets TBB have `threads` on any machine.
class Workers {
 public:
  explicit Workers(size_t threads) : allowed_(oneapi::tbb::global_control::max_allowed_parallelism, threads) {}

  // Waits until all of them have ended, and so have left all arenas. Requires that each arena was terminated.
  void End() { oneapi::tbb::finalize(handle_); }

 private:
  oneapi::tbb::global_control allowed_;
  oneapi::tbb::task_scheduler_handle handle_{oneapi::tbb::attach{}};
};

}  // namespace perfkit
