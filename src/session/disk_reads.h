// When threads had something read from a disk: by the kernel's accounts, which are read now and then. A wait that was
// too short to be examined may be explained by that.
#pragma once

#include <cstdint>
#include <unordered_map>

namespace perfkit::session {

// Not thread-safe.
class DiskReads {
 public:
  // The account of a thread at `time_ns`, in order of time: proc::ReadDiskBytes.
  void Add(uint32_t thread, uint64_t time_ns, uint64_t bytes);
  // Returns true if the account may have grown between two times: by two numbers that Add has had from around them.
  // Knows the latest growth only.
  bool HasRead(uint32_t thread, uint64_t from_ns, uint64_t to_ns) const;
  void Forget(uint32_t thread) { threads_.erase(thread); }

 private:
  struct Account {
    uint64_t at_ns = 0, bytes = 0;
    // It has grown between each two numbers of this time.
    uint64_t grew_from_ns = 0, grew_to_ns = 0;
  };
  std::unordered_map<uint32_t, Account> threads_;  // by index in Profile::threads
};

}  // namespace perfkit::session
