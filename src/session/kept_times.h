// Times whose samples, zones and counters stay: of all threads, or of one.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace perfkit::session {

// Add, then Join, then ask. Not thread-safe.
class KeptTimes {
 public:
  static constexpr uint32_t kAllThreads = UINT32_MAX;

  // `thread`: in Profile::threads.
  void Add(uint64_t from_ns, uint64_t to_ns, uint32_t thread = kAllThreads);
  void Join();

  // Whether some of a thread's time is kept. A time without a length is a moment.
  bool Overlaps(uint32_t thread, uint64_t from_ns, uint64_t to_ns) const;
  // Whether all of it is.
  bool Covers(uint32_t thread, uint64_t from_ns, uint64_t to_ns) const;

 private:
  using Times = std::vector<std::pair<uint64_t, uint64_t>>;  // once joined: in order, without a touch

  static void Join(Times& times);
  const Times& Of(uint32_t thread) const;

  Times of_all_;
  std::map<uint32_t, Times> of_thread_;  // once joined: with those of all threads
};

}  // namespace perfkit::session
