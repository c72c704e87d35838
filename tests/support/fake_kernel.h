// A system-call table between perfkit and Linux, for tests: counts calls, lets the n-th one fail, finds leaks.
//
//   FakeKernel fake;                                     // in force until it dies; forwards to Linux
//   fake.FailNth(3, EMFILE);                             // the third call from now on
//   fake.FailAll(Call::kPerfEventOpen, EACCES);          // all calls of one kind
//   fake.below().geteuid = [] { return uid_t{1000}; };   // or any behaviour at all
//   ...
//   CHECK(fake.Leaks() == "");
//
// Only one may exist at a time. Calls may come from several threads, but not from signal handlers.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "src/sys/kernel.h"

namespace perfkit::testing {

// The members of sys::Kernel that can fail. Those that never fail (gettid, getpid, geteuid) are not counted.
enum class Call : uint8_t {
  kAny,
  kPerfEventOpen,
  kIoctl,
  kRead,
  kPread,
  kWrite,
  kClose,
  kMmap,
  kMunmap,
  kOpen,
  kFstat,
  kFchmod,
  kRename,
  kUnlink,
  kFcntl,
  kPipe,
  kClockGettime,
  kNanosleep,
  kGetrusage,
  kGetrlimit,
  kCapget,
  kPrctl,
  kFork,
  kExec,
  kWait,
  kKill,
  kSigaction,
  kSigprocmask,
  kEpollCreate,
  kEpollCtl,
  kEpollWait,
  kCount,
};
const char* CallName(Call call);

class FakeKernel {
 public:
  FakeKernel();
  ~FakeKernel();
  FakeKernel(const FakeKernel&) = delete;
  FakeKernel& operator=(const FakeKernel&) = delete;

  // The table that gets the calls that do not fail. Replace its members before the code under test runs.
  sys::Kernel& below() { return below_; }

  // The n-th call of a kind from now on (1 means the next) fails with `error`. Replaces an earlier FailNth. close and
  // munmap do their work and then report the error, as on Linux: their argument is released. `times`: that call and
  // those after it, so many in all; kAlways: for ever.
  void FailNth(uint64_t n, int error, Call only = Call::kAny, uint64_t times = 1);
  static constexpr uint64_t kAlways = INT64_MAX;
  // Errors of FailNth for read, pread and write that are none: half of the bytes, and the end of the file.
  static constexpr int kHalf = -1, kEnd = -2;
  // All calls of `call` fail with `error`, until Forgive.
  void FailAll(Call call, int error);
  void Forgive();

  // Returns the number of calls of a kind since construction, failed ones included.
  uint64_t calls(Call call = Call::kAny) const { return calls_[static_cast<size_t>(call)]; }
  // Returns the call that FailNth has failed; kAny if none.
  Call struck() const { return struck_; }

  // Returns a list of what was opened or mapped through this table and was not closed, or "". To be called after all
  // owners were destroyed.
  std::string Leaks() const;

 private:
  friend struct FakeCalls;  // The members of the table: fake_kernel.cc.

  // Returns the errno with which this call must fail, or 0.
  int Strike(Call call);
  void Opened(int fd, Call by);
  void Closed(int fd, bool unknown);
  void Mapped(uintptr_t at, size_t size);
  void Unmapped(uintptr_t at, size_t size);

  sys::Kernel below_ = sys::kLinux;
  const sys::Kernel* before_;
  std::array<std::atomic<uint64_t>, static_cast<size_t>(Call::kCount)> calls_{};
  std::array<std::atomic<int>, static_cast<size_t>(Call::kCount)> always_{};
  std::atomic<int64_t> left_{0};   // Calls until the first that fails; 1: the next; 0 or less: it has failed.
  std::atomic<int64_t> times_{0};  // Number of calls that fail from then on; 0: none.
  std::atomic<int> error_{0};
  std::atomic<Call> only_{Call::kAny};
  std::atomic<Call> struck_{Call::kAny};

  mutable std::mutex mutex_;  // Guards the sets of open resources.
  std::map<int, Call> fds_;
  std::map<uintptr_t, size_t> mappings_;
  std::set<int> closed_unopened_;  // Closed without being open.
};

inline constexpr std::array<int, 5> kSweptErrors = {4 /* EINTR */, 24 /* EMFILE */, 1 /* EPERM */, 28 /* ENOSPC */,
                                                    12 /* ENOMEM */};

struct SweepTally {
  uint64_t calls = 0;     // Failing calls that were tried.
  uint64_t refused = 0;   // Runs that ended in a Status.
  uint64_t survived = 0;  // Runs that did without the call, and succeeded.
};

// Runs `fn` with its first call failing, then its second, and so on until no call is left to fail, once for each of
// `errors`. `fn` opens, uses and closes, and returns its Status. Without a fault it must succeed (REQUIREd first).
// After any fault it must leave nothing open, and it must check that its result is valid. Catch2 reports.
SweepTally SweepFaults(absl::FunctionRef<absl::Status()> fn, std::span<const int> errors = kSweptErrors);

}  // namespace perfkit::testing
