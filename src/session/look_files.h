// Keeps the files of threads open between looks: to open them takes half the time of a look.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/proc/blocked_call.h"
#include "src/sys/fork_registry.h"

namespace perfkit::session {

// Not thread-safe. A forked child's copy has no files.
class LookFiles {
 public:
  static constexpr size_t kMaxThreads = 16;  // two descriptors each

  LookFiles() = default;

  // Returns the files of a thread. They are valid until the next call, which may close those of another thread.
  const proc::ThreadFiles& Of(pid_t tid);
  // Closes the files of a thread. To be called after a look that failed: the thread may have ended, and a later one may
  // have its id.
  void Forget(pid_t tid);
  void CloseAll();

 private:
  struct Entry {
    proc::ThreadFiles files;
    uint64_t last_use = 0;
  };

  std::array<Entry, kMaxThreads> entries_;
  uint64_t uses_ = 0;
  sys::ForkListener fork_listener_{[](void* self) { static_cast<LookFiles*>(self)->CloseAll(); }, this};
};

}  // namespace perfkit::session
