// The state is constant-initialised: the first lock may be taken before any constructor runs. Nothing here allocates,
// locks or uses thread-local storage, because a wait may be one of the memory allocator's, and a semaphore may be
// posted in a signal handler.
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
constinit uint64_t g_lost_before = 0;  // the reader's: what was lost until it started
constinit WaitRing g_ring;
constinit ReleaseTable g_releases;

// Not by the table of kernel.h: the library that is preloaded has nothing else of the core.
uint64_t NowNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint32_t ThisTid() { return static_cast<uint32_t>(detail::CallKernel(SYS_gettid, 0, 0, 0, 0)); }

bool Start(uint64_t threshold_ns) {
  // Acquire pairs with the release in Stop: the ring has one reader.
  if (g_has_reader.exchange(true, std::memory_order_acquire)) return false;
  LockWait old;
  while (g_ring.Take(old)) {
  }
  g_lost_before = g_ring.lost();
  g_threshold_ns.store(threshold_ns, std::memory_order_relaxed);  // Pairs with the loads in IsRecording and End.
  return true;
}

bool Take(LockWait& wait) { return g_ring.Take(wait); }

uint64_t Lost() { return g_ring.lost() - g_lost_before; }

void Stop() {
  g_threshold_ns.store(kOff, std::memory_order_relaxed);  // Pairs with the loads in IsRecording and End.
  g_has_reader.store(false, std::memory_order_release);   // Pairs with the acquire in Start.
}

void OnForkedChild() {
  g_ring.Clear();
  g_releases.Clear();
  Stop();
}

constexpr LockWaitSource kSource = {Start, Take, Lost, Stop, OnForkedChild};

}  // namespace

const LockWaitSource& Source() { return kSource; }

RecordedWait::RecordedWait(const void* lock, LockKind kind, uint32_t holder, bool enters)
    : lock_(lock), enters_(enters) {
  if (enters_) g_releases.Enter(lock_);
  const Release before = g_releases.Last(lock_);
  released_by_ = before.who, released_ns_ = before.at_ns;
  wait_ = {.lock = reinterpret_cast<uintptr_t>(lock),
           .from_ns = NowNs(),
           .holder = holder,
           .kind = kind};
}

RecordedWait::~RecordedWait() {
  if (enters_) g_releases.Leave(lock_);
}

void RecordedWait::End(bool acquired) {
  wait_.to_ns = NowNs();
  // Off since the wait began: the threshold is larger than any wait. Relaxed: as IsRecording.
  if (wait_.to_ns - wait_.from_ns < g_threshold_ns.load(std::memory_order_relaxed)) return;
  const Release last = g_releases.Last(lock_);
  if (acquired && (last.who != released_by_ || last.at_ns != released_ns_)) {
    wait_.releaser = ReleaseTable::TidOf(last, lock_);
    if (wait_.releaser != 0) wait_.released_ns = last.at_ns;
  }
  wait_.acquired = acquired;
  wait_.tid = ThisTid();
  g_ring.Put(wait_);
}

bool IsAwaited(const void* lock) { return g_releases.Awaited(lock); }

void NoteRelease(const void* lock, uint32_t tid) {
  if (IsRecording()) g_releases.Note(lock, tid != 0 ? tid : ThisTid(), NowNs());
}

}  // namespace perfkit::sys::locks
