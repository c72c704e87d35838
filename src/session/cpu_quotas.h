// When the CPU quotas of the process's control groups were used up, by the kernel's accounts, which are read from time
// to time: this is why threads could not run although nothing else did.
//
//   CPU        ── ours ──┤ throttled ············├── ours ──     the account grows by the length at its end
//   readings   |    |    |    |    |    |    |    |x
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace perfkit::session {

// Not thread-safe.
class ThrottledTimes {
 public:
  // Adds a reading of a group's account, made between `before_ns` and `after_ns`. Those of a group come in order of
  // time.
  void Add(const std::string& group, uint64_t before_ns, uint64_t after_ns, uint64_t throttled_ns);
  // Returns for how much of a time at most the quotas were used up on the CPU of one thread. The accounts are sums over
  // CPUs, so for which CPU it was is not known.
  uint64_t Within(uint64_t from_ns, uint64_t to_ns) const;

 private:
  struct Account {
    uint64_t before_ns = 0, throttled_ns = 0;
  };
  struct Growth {  // between two readings
    uint64_t from_ns = 0, to_ns = 0, ns = 0;
  };
  static constexpr size_t kMaxGrowths = 1024;

  std::map<std::string, Account> accounts_;  // by group
  std::deque<Growth> growths_;               // the latest ones, in order of their ends
};

// Not thread-safe.
class CpuQuotas {
 public:
  // Reads the accounts of the groups that have a quota. Looks once a second for new quotas.
  void Read();
  // As ThrottledTimes::Within. Reads the accounts if that was not done since `to_ns`.
  uint64_t ThrottledWithin(uint64_t from_ns, uint64_t to_ns);

 private:
  ThrottledTimes times_;
  std::vector<std::string> groups_;
  uint64_t found_ns_ = 0;  // when groups_ were found; 0: not yet
  uint64_t read_ns_ = 0;   // when the last Read began
};

}  // namespace perfkit::session
