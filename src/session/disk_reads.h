// When threads read from a disk, by the kernel's accounts, which are sampled from time to time. This may explain a wait
// that was too short to be examined.
#pragma once

#include <cstdint>
#include <unordered_map>

namespace perfkit::session {

// Not thread-safe.
class DiskReads {
 public:
  // Adds a reading of a thread's account (proc::ReadDiskBytes) at `time_ns`. Those of a thread come in order of time.
  void Add(uint32_t thread, uint64_t time_ns, uint64_t bytes);
  // Returns true if the account may have grown between `from_ns` and `to_ns`: if this interval overlaps the latest growth.
  bool HasRead(uint32_t thread, uint64_t from_ns, uint64_t to_ns) const;
  void Forget(uint32_t thread) { threads_.erase(thread); }

 private:
  struct Account {
    uint64_t at_ns = 0, bytes = 0;
    // The latest growth: the account grew between each two successive readings from grew_from_ns to grew_to_ns.
    uint64_t grew_from_ns = 0, grew_to_ns = 0;
  };
  std::unordered_map<uint32_t, Account> threads_;  // by index in Profile::threads
};

}  // namespace perfkit::session
