// A fixed table of claims, which a signal handler can read at any moment. A claim is a slot with a state and an epoch
// in one word; the 64 bits of an event name the slot and the epoch, so that a late signal finds an ended claim or
// another epoch. The handler counts itself into the slot before it reads the state, and End closes the slot before it
// reads that count: one of the two sees the other, without a lock. Slots are never freed, because a signal may arrive
// at any later time.
#include "src/sys/sample_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "src/sys/clock.h"
#include "src/sys/kernel.h"
#include "src/sys/signals.h"

namespace perfkit::sys {

// `state` is one of the states below, with the epoch.
struct SampleClaim::Slot {
  uint32_t state;
  uint32_t under_way;  // Calls of the handler that have not returned.
  SampleHandler handler;
  void* self;
  uint64_t reused;  // SampleClaim::reused_descriptors.
};

namespace {

constexpr uint32_t kNoClaim = 0u << 30, kClaiming = 1u << 30, kClaimed = 2u << 30, kStuckClaim = 3u << 30;
constexpr uint32_t kEpochs = 1 << 12;
constexpr uint32_t kClaims = 16;

constexpr int kDescriptorsAPage = 1 << 10;

struct SampleTable {
  SampleClaim::Slot slots[kClaims];
  uint64_t late;
  // The data given to SignalBy, by descriptor. A page is allocated when its first entry is set, and stays. The entry of
  // a closed descriptor stays too. A signal that arrives after its descriptor was closed and its number was given to
  // another event is taken for a signal of that event: SignalBy says what its reader must check.
  uint64_t* by_descriptor[SampleClaim::kMaxDescriptors / kDescriptorsAPage];
  bool any_descriptor;
};
constinit SampleTable g_samples{};

// Names this copy of perfkit among the copies in the process: two copies lie some pages apart. The top bit makes the
// value different from every pointer.
PERFKIT_IN_HANDLER uint64_t ThisCopy() { return 0x8000 | (reinterpret_cast<uintptr_t>(&g_samples) >> 12 & 0x7fff); }

constexpr uint32_t EpochOf(uint32_t state) { return state & (kEpochs - 1); }

SampleClaim::Slot* TakeClaim(uint32_t& epoch) {
  for (SampleClaim::Slot& slot : g_samples.slots) {
    uint32_t state = __atomic_load_n(&slot.state, __ATOMIC_RELAXED);
    epoch = (EpochOf(state) + 1) % kEpochs;
    // kStuckClaim has both bits of the state, so it is also their mask.
    if ((state & kStuckClaim) != kNoClaim) continue;
    // Acquire pairs with the release in End: the last owner has finished with the slot.
    if (__atomic_compare_exchange_n(&slot.state, &state, kClaiming | epoch, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
      return &slot;
    }
  }
  return nullptr;
}

// Returns the 64 bits of a signal's event. 0: it is no sample's signal.
PERFKIT_IN_HANDLER uint64_t DataOf(const siginfo_t& info, bool& stale) {
  stale = false;
  if (info.si_code == kTrapPerf) {
    const auto* const fields = reinterpret_cast<const SampleSignal*>(&info);
    stale = (fields->flags & kTrapPerfAsync) != 0;
    return fields->data;
  }
  if (info.si_code != SI_SIGIO || info.si_fd < 0 || info.si_fd >= SampleClaim::kMaxDescriptors) return 0;
  const uint64_t* const page =
      __atomic_load_n(&g_samples.by_descriptor[info.si_fd / kDescriptorsAPage], __ATOMIC_ACQUIRE);
  return page == nullptr ? 0 : __atomic_load_n(&page[info.si_fd % kDescriptorsAPage], __ATOMIC_RELAXED);
}

// Returns the number of the claim, with its epoch, that `data` names.
PERFKIT_IN_HANDLER uint32_t ClaimOf(uint64_t data) { return data >> 32 & 0xffff; }

// Returns true for a descriptor's signal for whose siginfo the kernel had no room (RLIMIT_SIGPENDING). It looks like a
// signal without a sender, and would end the process if it were not handled.
PERFKIT_IN_HANDLER bool IsBare(const siginfo_t& info) {
  return info.si_code == SI_USER && info.si_pid == 0 && __atomic_load_n(&g_samples.any_descriptor, __ATOMIC_RELAXED);
}

}  // namespace

absl::StatusOr<SampleClaim> SampleClaim::OfProcess(SampleHandler handler, void* self) {
  if (absl::Status installed = InstallTrapHandler(); !installed.ok()) return installed;
  uint32_t epoch = 0;
  Slot* const slot = TakeClaim(epoch);
  if (slot == nullptr) {
    return absl::Status(absl::StatusCode::kResourceExhausted, "SIGTRAP: 16 samplers have claimed its signals already");
  }
  slot->handler = handler;
  slot->self = self;
  slot->reused = 0;
  // Release pairs with the load in TakeSampleSignal: a thread that finds the slot open finds its handler.
  __atomic_store_n(&slot->state, kClaimed | epoch, __ATOMIC_RELEASE);
  const auto index = static_cast<uint64_t>(slot - g_samples.slots);
  return SampleClaim(slot, ThisCopy() << 48 | (index * kEpochs + epoch) << 32);
}

// A process may send itself what the kernel alone sends to others (kernel/signal.c, do_rt_tgsigqueueinfo).
uint64_t SampleClaim::MeasureCostNs(uint32_t number) const {
  sigset_t blocked;
  if (::pthread_sigmask(SIG_BLOCK, nullptr, &blocked) != 0 || sigismember(&blocked, SIGTRAP) == 1) return 0;
  siginfo_t info{};
  auto* const fields = reinterpret_cast<SampleSignal*>(&info);
  fields->signal = SIGTRAP;
  fields->code = kTrapPerf;
  fields->data = SigData(number);
  fields->flags = kTrapPerfAsync;
  const long process = ::syscall(SYS_getpid), thread = ::syscall(SYS_gettid);
  uint64_t min_ns = UINT64_MAX;
  for (int i = 0; i < 8; ++i) {
    const uint64_t from_ns = ClockNs(CLOCK_MONOTONIC);
    if (::syscall(SYS_rt_tgsigqueueinfo, process, thread, SIGTRAP, &info) != 0) return 0;
    min_ns = std::min(min_ns, ClockNs(CLOCK_MONOTONIC) - from_ns);
  }
  return min_ns;
}

// The handler counts itself and then checks that the claim is open; End closes the claim and then checks the count. All
// four accesses are sequentially consistent, so at least one of the two sees the other.
bool SampleClaim::End() {
  Slot* const slot = std::exchange(slot_, nullptr);
  if (slot == nullptr) return true;
  const uint32_t epoch = EpochOf(slot->state);
  __atomic_store_n(&slot->state, kClaiming | epoch, __ATOMIC_SEQ_CST);
  // Waits for a second at most: the thread of that call may be stopped, or starved by a real-time thread.
  for (int i = 0; i < 10'000; ++i) {
    if (__atomic_load_n(&slot->under_way, __ATOMIC_SEQ_CST) == 0) {
      // Release pairs with the acquire in TakeClaim.
      __atomic_store_n(&slot->state, kNoClaim | epoch, __ATOMIC_RELEASE);
      return true;
    }
    const timespec pause{0, 100'000};
    kernel().nanosleep(&pause);
  }
  // The slot is never taken again, because that call will still use its handler and `self`.
  __atomic_store_n(&slot->state, kStuckClaim | epoch, __ATOMIC_RELEASE);
  return false;
}

void SampleClaim::OnForkedChild() {
  Slot* const slot = std::exchange(slot_, nullptr);
  if (slot == nullptr) return;
  // Handlers under way in the parent's other threads do not exist here.
  slot->under_way = 0;
  __atomic_store_n(&slot->state, kNoClaim | EpochOf(slot->state), __ATOMIC_RELEASE);
}

absl::Status SampleClaim::SignalBy(int fd, pid_t tid, uint64_t data) {
  if (fd >= kMaxDescriptors) return absl::ResourceExhaustedError("too many descriptors for signals of samples");
  uint64_t*& page = g_samples.by_descriptor[fd / kDescriptorsAPage];
  uint64_t* found = __atomic_load_n(&page, __ATOMIC_ACQUIRE);
  if (found == nullptr) {
    uint64_t* const made = new (std::nothrow) uint64_t[kDescriptorsAPage]();
    if (made == nullptr) return absl::ResourceExhaustedError("no memory for signals of samples");
    // Release pairs with the acquire in DataOf: a thread that finds the page finds its zeros.
    if (__atomic_compare_exchange_n(&page, &found, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      found = made;
    } else {
      delete[] made;
    }
  }
  if (__atomic_exchange_n(&found[fd % kDescriptorsAPage], data, __ATOMIC_RELAXED) != 0) {
    __atomic_add_fetch(&g_samples.slots[ClaimOf(data) / kEpochs].reused, 1, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&g_samples.any_descriptor, true, __ATOMIC_RELAXED);  // Never reset, as signals may be under way.
  const f_owner_ex owner{F_OWNER_TID, tid};
  const bool sends = kernel().fcntl(fd, F_SETOWN_EX, reinterpret_cast<unsigned long>(&owner)) == 0 &&
                     kernel().fcntl(fd, F_SETSIG, SIGTRAP) == 0 && kernel().fcntl(fd, F_SETFL, O_ASYNC) == 0;
  if (sends) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "having an event's descriptor signal its samples (F_SETOWN_EX, F_SETSIG, O_ASYNC)");
}

uint64_t SampleClaim::reused_descriptors() const {
  return slot_ == nullptr ? 0 : __atomic_load_n(&slot_->reused, __ATOMIC_RELAXED);
}

uint64_t LateSampleSignals() { return __atomic_load_n(&g_samples.late, __ATOMIC_RELAXED); }

PERFKIT_IN_HANDLER bool TakeSampleSignal(const siginfo_t& info, const ucontext_t& registers) {
  if (IsBare(info)) {
    __atomic_add_fetch(&g_samples.late, 1, __ATOMIC_RELAXED);
    return true;
  }
  bool stale = false;
  const uint64_t data = DataOf(info, stale);
  if (data >> 48 != ThisCopy()) return false;
  const uint32_t claim = ClaimOf(data);
  SampleClaim::Slot& slot = g_samples.slots[claim / kEpochs];
  __atomic_add_fetch(&slot.under_way, 1, __ATOMIC_SEQ_CST);  // Pairs with End.
  if (__atomic_load_n(&slot.state, __ATOMIC_SEQ_CST) == (kClaimed | claim % kEpochs)) {
    slot.handler(slot.self, static_cast<uint32_t>(data), stale, registers);
  } else {
    __atomic_add_fetch(&g_samples.late, 1, __ATOMIC_RELAXED);
  }
  // Release pairs with End: the handler has finished with all that it used.
  __atomic_sub_fetch(&slot.under_way, 1, __ATOMIC_RELEASE);
  return true;
}

}  // namespace perfkit::sys
