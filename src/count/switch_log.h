// The records that the kernel writes when a thread is switched off and on a CPU. They show what perf's own events hide
// from ordinary users.
//
// An ordinary user's context-switches and cpu-migrations events stay 0, because they happen in the kernel. But a dummy
// event with `context_switch` may write a record each time. Without fields, its ring is only a counter; with TID, TIME
// and CPU it also says when, to which CPU, and whether the thread was preempted.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "perfkit/count.h"
#include "src/open/live_ring.h"

namespace perfkit::count {

// A bare record is its 8-byte header; a switch is two records, out and in.
constexpr uint8_t kBareSwitchShift = 4;
// With sample_id_all TID|TIME|CPU: header, pid and tid, time, cpu and a reserved word: 32 bytes each.
constexpr uint8_t kDetailedSwitchShift = 6;

// Number of switches that a ring of detailed records holds: a frame, or a job, has fewer.
inline constexpr int kSwitchesInRing = 1024;

// One detailed switch record.
struct SwitchRecord {
  uint32_t type;
  uint16_t misc, size;
  uint32_t pid, tid;
  uint64_t time_ns;
  uint32_t cpu, reserved;

  bool is_out() const { return (misc & sys::kMiscSwitchOut) != 0; }
  bool is_preemption() const { return is_out() && (misc & sys::kMiscSwitchOutPreempt) != 0; }
};
static_assert(sizeof(SwitchRecord) == 32);

// Opens the ring of the calling thread's switches, in the group of `group_fd` unless that is -1 (LiveRing::Open).
absl::StatusOr<open::LiveRing> OpenSwitchRing(bool detailed, const sys::LazyRights& rights, int group_fd = -1);

// Opens `request`, a software event of the calling thread that counts, with that ring: one event costs a switch less
// than two.
absl::StatusOr<open::LiveRing> OpenWithSwitchRing(open::OpenRequest request, bool detailed,
                                                  const sys::LazyRights& rights);

// Counts migrations from detailed records: the thread came back on another CPU than it had left. A thread that was
// moved to another CPU and back before it ran there leaves no record of that, though the kernel's own event counts it.
//
// A value: a signal handler may continue with a copy while the original is being replaced.
class MigrationCounter {
 public:
  // Starts now; `cpu` is the CPU of the thread, ~0u if unknown.
  void Start(const open::LiveRing& ring, uint32_t cpu);

  // Processes the records since the last call. If there were more switches in between than the ring holds, that is a
  // gap, and counting goes on after it. Requires the ring's own thread.
  void Update(const open::LiveRing& ring);

  uint64_t migrations() const { return migrations_; }
  // Returns the number of gaps: a difference of `migrations` over a gap is no number. kMaxGaps means that there will be
  // no number any more.
  uint32_t gaps() const { return gaps_; }

 private:
  void SkipTo(uint64_t head, std::span<const std::byte> data);

  uint64_t position_ = 0;
  uint64_t migrations_ = 0;
  uint32_t cpu_ = ~0u;
  uint32_t gaps_ = 0;
};

}  // namespace perfkit::count
