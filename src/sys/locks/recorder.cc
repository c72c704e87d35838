// The state is constant-initialised, because the first lock may be taken before any constructor runs. Nothing here
// allocates, locks or uses thread-local storage, because the memory allocator itself may wait, and a signal handler may
// post a semaphore.
#include "src/sys/locks/recorder.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>

#include <atomic>

#include "src/sys/locks/releases.h"
#include "src/sys/locks/wait_ring.h"
#include "src/sys/own_memory.h"

namespace perfkit::sys::locks {

constinit std::atomic<uint64_t> g_threshold_ns{kOff};

namespace {

constinit std::atomic<bool> g_has_reader{false};
constinit std::atomic<uint32_t> g_recording{0};  // The number of the last recording. Start increases it.
constinit uint64_t g_lost_before = 0;            // records lost before the reader started; only the reader uses it
constinit WaitRing g_ring;
constinit ReleaseTable g_releases;

// Does not use the table of kernel.h, because the preloaded library does not contain the core.
uint64_t NowNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

bool Start(uint64_t threshold_ns) {
  // Acquire pairs with the release in Stop: the ring has one reader.
  if (g_has_reader.exchange(true, std::memory_order_acquire)) return false;
  LockWait old;
  while (g_ring.Take(old)) {
  }
  g_lost_before = g_ring.lost();
  CallRecorded(true);
  g_recording.fetch_add(1, std::memory_order_relaxed);  // The store below releases it.
  // Release: the functions that note releases, and the number, are stored before. Pairs with the acquire in End, and
  // with the load in IsRecording.
  g_threshold_ns.store(threshold_ns, std::memory_order_release);
  return true;
}

bool Take(LockWait& wait) { return g_ring.Take(wait); }

uint64_t Lost() { return g_ring.lost() - g_lost_before; }

void Stop() {
  g_threshold_ns.store(kOff, std::memory_order_relaxed);  // Pairs with the loads in IsRecording and End.
  CallRecorded(false);
  g_has_reader.store(false, std::memory_order_release);  // Pairs with the acquire in Start.
}

void OnForkedChild() {
  g_ring.Clear();
  g_releases.Clear();
  Stop();
}

constexpr LockWaitSource kSource = {Start, Take, Lost, Stop, OnForkedChild};

}  // namespace

const LockWaitSource& Source() { return kSource; }

RecordedWait::RecordedWait(const void* lock, LockKind kind, uint32_t holder, bool enters, const void* mutex) noexcept
    : lock_(lock), enters_(enters), recording_(g_recording.load(std::memory_order_relaxed)) {
  if (enters_) g_releases.Enter(lock_);
  releases_before_ = g_releases.Last(lock_).count;
  wait_ = {.lock = reinterpret_cast<uintptr_t>(lock),
           .mutex = reinterpret_cast<uintptr_t>(mutex),
           .from_ns = NowNs(),
           .holder = holder,
           .kind = kind};
}

RecordedWait::~RecordedWait() {
  if (enters_) g_releases.Leave(lock_);
}

void RecordedWait::End(bool acquired, uint64_t timeout_ns) noexcept {
  wait_.to_ns = NowNs();
  // If recording has stopped meanwhile, the threshold is kOff, which no wait reaches. Acquire: pairs with the release
  // in Start. If recording has also started again, releases between the two are missing, and the number is another one.
  if (wait_.to_ns - wait_.from_ns < g_threshold_ns.load(std::memory_order_acquire)) return;
  if (recording_ != g_recording.load(std::memory_order_relaxed)) return;
  const Release last = g_releases.Last(lock_);
  // A condition or semaphore may also be signalled after the call has returned.
  if (acquired && wait_.from_ns <= last.at_ns && last.at_ns <= wait_.to_ns) {
    wait_.releaser = ReleaseTable::TidOf(last, lock_);
    if (wait_.releaser != 0) wait_.released_ns = last.at_ns;
  }
  if (wait_.kind == LockKind::kCondition) wait_.signalled_ns = SignalledNs(timeout_ns);
  // With two releases or more, another thread may have had the lock between them.
  const bool is_only_release = last.count - releases_before_ == 1;
  wait_.has_one_holder = wait_.holder != 0 && wait_.holder == wait_.releaser && is_only_release;
  wait_.acquired = acquired;
  wait_.tid = ThisTid();
  g_ring.Put(wait_);
}

// If another thread begins to wait after the first signal, only later ones are known. The first release of the entry is
// one of this lock if the last one is, unless the entry serves two locks.
uint64_t RecordedWait::SignalledNs(uint64_t timeout_ns) const noexcept {
  const auto is_within = [this](uint64_t time_ns) { return wait_.from_ns <= time_ns && time_ns <= wait_.to_ns; };
  if (timeout_ns != 0) return is_within(timeout_ns) ? timeout_ns : wait_.from_ns;  // It was over at the call.
  const uint64_t first_ns = g_releases.FirstNs(lock_);
  return wait_.releaser != 0 && is_within(first_ns) ? first_ns : wait_.released_ns;
}

bool IsAwaited(const void* lock) noexcept { return g_releases.Awaited(lock); }

void NoteRelease(const void* lock, uint32_t tid) noexcept {
  if (IsRecording()) g_releases.Note(lock, tid != 0 ? tid : ThisTid(), NowNs());
}

}  // namespace perfkit::sys::locks
