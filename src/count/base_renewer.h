// Renews the data of a thread's inline reads that change when it is switched: its clock's base (detail::ClockBase), its
// CPU, the numbers of its switches and migrations (detail::ReadPlan::Epoch).
//
// They are computed in copies and stored in a few instructions under a version number, which is odd meanwhile. A
// signal handler on the same thread may read at any time, may renew the base itself, or may leave by a jump in the
// middle: it never uses half a base, and the clock never goes back.
//
// All functions of the data path are inline: src/sys/read.h says why.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

#include "perfkit/counter.h"
#include "src/count/switch_log.h"
#include "src/open/live_ring.h"
#include "src/sys/read.h"

namespace perfkit::count {

// On the counted thread. Nothing allocates after the setters.
class BaseRenewer {
 public:
  // The events must outlive this. They may be one. A read of the clock within `quick_read_ticks` was not interrupted.
  void SetClock(const open::LiveRing& clock, uint64_t quick_read_ticks) {
    clock_ = &clock;
    quick_read_ticks_ = quick_read_ticks;
  }
  // `shift`: the binary logarithm of the bytes of a switch in the ring.
  void SetSwitchRing(const open::LiveRing& ring, uint8_t shift) {
    switch_ring_ = &ring;
    switch_shift_ = shift;
  }
  // Counts migrations from here, on CPU `cpu`. Requires the switch ring.
  void StartMigrations(uint32_t cpu) { migrations_[0].Start(*switch_ring_, cpu); }

  // Return nullptr if there is none.
  const open::LiveRing* clock() const { return clock_; }
  const open::LiveRing* switch_ring() const { return switch_ring_; }

  // Returns false if there is no base now. `gapped()` returns the events that are counted from switch records.
  template <class Gapped>
  bool Renew(detail::ReadPlan& plan, Gapped&& gapped) noexcept;

  // Reads the clock from the kernel. Returns false if that gave no number. Requires the clock.
  bool ReadClock(uint64_t& time_ns) const noexcept {
    std::array<uint64_t, 2> words;  // The event's count, 0, and its time on: SourceBuilder::ClockRequest.
    if (sys::kernel().read(clock_->fd(), words.data(), sizeof(words)) != sizeof(words)) return false;
    time_ns = words[1];
    return true;
  }
  // Returns the number of switches up to now. Requires the switch ring.
  uint64_t SwitchesNow() const noexcept { return LoadShared(switch_ring_->page()->data_head) >> switch_shift_; }
  // Returns the migrations as of the base. Valid until a signal handler has renewed the base twice.
  const MigrationCounter& migrations() const noexcept { return migrations_[in_force_]; }

 private:
  // Reads of the clock, among which one should not be interrupted.
  static constexpr int kRenewTries = 4;

  bool ReadClockBase(const UserPage& page, uint32_t lock, detail::ClockBase& base) const noexcept;
  template <class Gapped>
  detail::ReadPlan::Epoch EpochOf(const detail::ReadPlan& plan, uint32_t lock, const MigrationCounter& migrations,
                                  Gapped& gapped) const noexcept;
  void Commit(const detail::ClockBase& base, const detail::ReadPlan::Epoch& epoch, const MigrationCounter& migrations,
              detail::ReadPlan& plan) noexcept;

  const open::LiveRing* switch_ring_ = nullptr;
  const open::LiveRing* clock_ = nullptr;
  uint8_t switch_shift_ = 0;
  uint64_t quick_read_ticks_ = 0;
  // The current one and the next one, which comes into force as a whole.
  std::array<MigrationCounter, 2> migrations_;
  uint32_t in_force_ = 0;
  // While the version of the base is odd: stack address of an object of the code that changes the base.
  uintptr_t renewer_ = 0;
};

// If this is a signal handler that interrupted the writing of the base, that will go on, and there is no base until
// then. If a signal handler left that code by a jump, the code will not go on. That is certain once an object of this
// call has the address of its object, as no two living objects do. Until then, numbers are correct but slower.
template <class Gapped>
bool BaseRenewer::Renew(detail::ReadPlan& plan, Gapped&& gapped) noexcept {
  detail::ClockBase base;
  const auto here = reinterpret_cast<uintptr_t>(&base);
  // The base may be written if its version is even, or if the code that left it odd can't go on.
  if ((plan.base.version & 1) != 0 && renewer_ != here) return false;
  base.version = plan.base.version;
  const uint32_t lock = LoadShared(plan.page->lock);
  if (clock_ != nullptr && !ReadClockBase(*plan.page, lock, base)) return false;
  MigrationCounter migrations = migrations_[in_force_];
  if (plan.migration_index < kMaxEvents) migrations.Update(*switch_ring_);
  const detail::ReadPlan::Epoch epoch = EpochOf(plan, lock, migrations, gapped);
  renewer_ = here;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // One instruction compares the version and makes it odd: no signal handler can renew the base in between, and have it
  // replaced by this older one.
  uint32_t expected = base.version;
  const bool is_latest = __atomic_compare_exchange_n(&plan.base.version, &expected, base.version | 1, false,
                                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  if (is_latest) Commit(base, epoch, migrations, plan);
  return true;
}

// If there was a switch since `lock` was read, it is not the page's lock any more, and no reader uses the values.
template <class Gapped>
detail::ReadPlan::Epoch BaseRenewer::EpochOf(const detail::ReadPlan& plan, uint32_t lock,
                                             const MigrationCounter& migrations, Gapped& gapped) const noexcept {
  detail::ReadPlan::Epoch epoch = plan.epoch;
  epoch.lock = lock;
  epoch.cpu = __atomic_load_n(plan.cpu, __ATOMIC_RELAXED);
  if (plan.migration_index < kMaxEvents) {
    epoch.values[plan.migration_index] = migrations.migrations();
    if (migrations.gaps() != 0) {
      epoch.missing = (epoch.missing & detail::kMissingMask) | gapped() | migrations.gaps() << detail::kGapShift;
    }
  }
  for (uint32_t left = plan.switch_mask; left != 0; left &= left - 1) {
    epoch.values[static_cast<size_t>(__builtin_ctz(left))] = SwitchesNow();
  }
  for (size_t r = kMaxEvents - plan.epoch_ring_count; r < kMaxEvents; ++r) {
    epoch.values[plan.rings[r].index] = ReadNewestCount(plan.rings[r].ring);
  }
  return epoch;
}

// Requires that the version is odd, so that no signal handler renews the base. A signal handler that leaves by a jump
// leaves the version odd, and one of the two counters complete.
inline void BaseRenewer::Commit(const detail::ClockBase& base, const detail::ReadPlan::Epoch& epoch,
                                const MigrationCounter& migrations, detail::ReadPlan& plan) noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  plan.epoch = epoch;
  if (plan.migration_index < kMaxEvents) {
    // After the epoch, which has the number of gaps: a signal handler that reads in between counts from the old
    // counter, finds the new gap, and gives no number. The other way round, it would not notice the gap.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    migrations_[in_force_ ^ 1] = migrations;
    // A jump out of a signal handler before the next line leaves the old counter in force, after it the new one.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    in_force_ ^= 1;
  }
  plan.base.ticks = base.ticks;
  // The new base may lie a little before what an inline read has returned: the clock must not go back.
  plan.base.time_ns = std::max(base.time_ns, plan.last_time_ns);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  plan.base.version = (base.version | 1) + 1;
}

// Takes the fastest of a few reads: the clock's value belongs to some moment within the read, and the shorter the read,
// the more exactly its middle is known. Returns false if the kernel gave none.
inline bool BaseRenewer::ReadClockBase(const UserPage& page, uint32_t lock, detail::ClockBase& base) const noexcept {
  uint64_t best = ~uint64_t{0};
  for (int i = 0; i < kRenewTries; ++i) {
    uint64_t time_ns = 0;
    const uint64_t before = ReadTicks();
    if (!ReadClock(time_ns)) break;
    const uint64_t took = ReadTicks() - before;
    if (took < best) {
      best = took;
      base.ticks = before + took / 2;
      base.time_ns = time_ns;
    }
    if (took <= quick_read_ticks_) break;
    // The thread was switched: what was read here belongs to no epoch, and the reader will find that out by itself.
    if (LoadShared(page.lock) != lock) break;
  }
  return best != ~uint64_t{0};
}

}  // namespace perfkit::count
