// How much the followers of a sampled event have counted from one sample to the next.
//
//   samples of a thread, on one CPU:   value 3      value 10    Pause ... Resume    value 90     value 95
//   grown since the one before:             3             7                      (unknown: 0)          5
//
// Each thread has a counter of its own on each CPU that its events were opened for.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

namespace perfkit::session {

// Not thread-safe.
class FollowerValues {
 public:
  static constexpr uint64_t kNever = UINT64_MAX;

  // Returns by how much value `id` of a thread has grown; 0 if its last value is not known. `born_ns`: when the thread
  // was first seen.
  uint64_t Grown(uint32_t thread, uint64_t born_ns, uint64_t id, uint64_t value);
  // To be called if samples were missing until `now_ns`: forgets the last values of all threads. kNever: threads that
  // start later have no known value before their first sample, either.
  void Restart(uint64_t now_ns);
  // To be called when the thread has ended.
  void Forget(uint32_t thread);

 private:
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> last_;  // by thread and id
  uint64_t known_from_ns_ = 0;
};

}  // namespace perfkit::session
