// Times whose samples, zones and counters are kept, for all threads or for one.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace perfkit::session {

// Call Add, then Join, then Overlaps and Covers. Not thread-safe.
class KeptTimes {
 public:
  static constexpr uint32_t kAllThreads = UINT32_MAX;

  // `thread`: in Profile::threads.
  void Add(uint64_t from_ns, uint64_t to_ns, uint32_t thread = kAllThreads);
  void Join();

  // Returns true if a part of this time of the thread is kept. If from_ns == to_ns, the time is a point.
  bool Overlaps(uint32_t thread, uint64_t from_ns, uint64_t to_ns) const;
  // Returns true if all of it is kept.
  bool Covers(uint32_t thread, uint64_t from_ns, uint64_t to_ns) const;

 private:
  using Times = std::vector<std::pair<uint64_t, uint64_t>>;  // once joined: sorted and disjoint

  static void Join(Times& times);
  const Times& Of(uint32_t thread) const;

  Times of_all_;
  std::map<uint32_t, Times> of_thread_;  // once joined: with those of all threads
};

}  // namespace perfkit::session
