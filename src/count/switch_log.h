// The records that a thread leaves when it is switched off and on a CPU: what perf's own events hide from users.
//
// An ordinary user's context-switches and cpu-migrations events stay 0 (they happen in the kernel), but a dummy event
// with `context_switch` may write a record each time. Bare, its ring is only a counter; with TID, TIME and CPU it also
// says when, where to, and whether the thread was preempted.
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

// Switches that a ring of detailed records holds: a frame, or a job, has fewer.
inline constexpr int kSwitchesInRing = 1024;

// One switch record of the detailed kind.
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

// The ring of the calling thread's switches.
absl::StatusOr<open::LiveRing> OpenSwitchRing(bool detailed, const sys::Rights& rights);

// Migrations, counted from detailed records: the thread came back on another CPU than it had left. One that was moved
// to another CPU and back before it ran there leaves no record of that, and the kernel's own event counts one.
//
// A value: a signal handler may count on with a copy while the original is being replaced.
class MigrationCounter {
 public:
  // From now on; `cpu` is where the thread runs, ~0u when unknown.
  void Start(const open::LiveRing& ring, uint32_t cpu);

  // Takes in the records since the last call. Where more switches came in between than the ring holds, that is a gap,
  // and counting goes on after it. Called by the ring's own thread.
  void Update(const open::LiveRing& ring);

  uint64_t migrations() const { return migrations_; }
  // How many gaps there were: a difference of `migrations` over one is no number. kMaxGaps: there is none any more.
  uint32_t gaps() const { return gaps_; }

 private:
  void SkipTo(uint64_t head, std::span<const std::byte> data);

  uint64_t position_ = 0;
  uint64_t migrations_ = 0;
  uint32_t cpu_ = ~0u;
  uint32_t gaps_ = 0;
};

}  // namespace perfkit::count
