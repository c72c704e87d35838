// Overlapped tasks and regions, which may end on another thread than they began on, and submitted frames, which ITT
// reports after they have ended. They have times, but no counts, because a counter counts one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "src/itt/abi.h"

namespace perfkit::itt {

// Thread-safe. Locks and allocates.
class TimedTasks {
 public:
  static constexpr size_t kMaxOpen = 100'000;
  static constexpr size_t kMaxNames = 1'000;

  struct Sum {
    uint64_t calls = 0;
    uint64_t total_ns = 0, max_ns = 0;
  };
  struct Totals {
    std::map<std::string, Sum> by_name;
    uint64_t open = 0;        // Begun and not ended.
    uint64_t mismatched = 0;  // Ended without a begin.
    uint64_t dropped = 0;     // Beyond kMaxOpen or kMaxNames.
    uint64_t untimed = 0;     // Submitted without valid times.
  };

  void Begin(const Domain* domain, const Id& id, std::string name, uint64_t now_ns);
  // Begins one that is in no sum: its end belongs to it.
  void BeginUntimed(const Domain* domain, const Id& id) { Begin(domain, id, "", 0); }
  // If several are open with this id, ends the one that began last.
  void End(const Domain* domain, const Id& id, uint64_t now_ns);
  // A frame is valid if it has two times, ends after its begin and not later than now, and does not make the sum of its
  // name overflow.
  void Submit(const std::string& name, uint64_t begin_ns, uint64_t end_ns, uint64_t now_ns);
  Totals Take() const;

 private:
  using Key = std::tuple<const Domain*, unsigned long long, unsigned long long, unsigned long long>;
  struct Open {
    std::string name;  // "" if it is in no sum.
    uint64_t begin_ns;
  };
  void Add(const std::string& name, uint64_t begin_ns, uint64_t end_ns);

  mutable std::mutex mutex_;
  std::multimap<Key, Open> open_;
  Totals totals_;
};

}  // namespace perfkit::itt
