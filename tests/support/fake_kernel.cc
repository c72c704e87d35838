// The fake table: one wrapper for each member, all made from two templates.
#include "tests/support/fake_kernel.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "absl/strings/str_format.h"

namespace perfkit::testing {
namespace {

using sys::Kernel;

constexpr std::array<const char*, static_cast<size_t>(Call::kCount)> kNames = {
    "any",       "perf_event_open", "ioctl",       "read",          "pread",
    "write",     "close",           "mmap",        "munmap",        "open",
    "fstat",     "fchmod",          "rename",      "unlink",        "fcntl",
    "pipe2",     "clock_gettime",   "nanosleep",   "getrusage",     "getrlimit",
    "capget",    "prctl",           "fork",        "execvp",        "wait4",
    "kill",      "sigaction",       "sigprocmask", "epoll_create1", "epoll_ctl",
    "epoll_wait"};

// A sweep with more calls than this does not end.
constexpr uint64_t kLongestSweep = 100'000;

std::atomic<FakeKernel*> g_fake{nullptr};

// Returns the result of a failed call: -1, or MAP_FAILED.
template <class R>
R Failed(int error) {
  errno = error;
  if constexpr (std::is_pointer_v<R>) {
    return MAP_FAILED;
  } else {
    return static_cast<R>(-1);
  }
}

// Returns the number of this process's descriptors, by the kernel's own list: finds leaks that bypass the table.
size_t OpenDescriptors() {
  size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++n;
  return n;
}

}  // namespace

const char* CallName(Call call) { return kNames[static_cast<size_t>(call)]; }

// The members of the fake table. A struct, so that FakeKernel can befriend all of them at once.
struct FakeCalls {
  static FakeKernel& fake() { return *g_fake.load(std::memory_order_acquire); }

  // The member kMember of the table as a function: fails if it is its turn, else forwards.
  template <Call kCall, auto kMember>
  struct Wrap;
  template <Call kCall, class R, class... Args, R (*Kernel::*kMember)(Args...)>
  struct Wrap<kCall, kMember> {
    static R Go(Args... args) {
      if (const int error = fake().Strike(kCall)) return Failed<R>(error);
      return (fake().below_.*kMember)(args...);
    }
  };

  static int PerfEventOpen(const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group, unsigned long flags) {
    const int fd = Wrap<Call::kPerfEventOpen, &Kernel::perf_event_open>::Go(attr, pid, cpu, group, flags);
    fake().Opened(fd, Call::kPerfEventOpen);
    return fd;
  }

  static int Open(const char* path, int flags) {
    const int fd = Wrap<Call::kOpen, &Kernel::open>::Go(path, flags);
    fake().Opened(fd, Call::kOpen);
    return fd;
  }

  static int Pipe(int fds[2], int flags) {
    const int result = Wrap<Call::kPipe, &Kernel::pipe2>::Go(fds, flags);
    if (result != 0) return result;
    fake().Opened(fds[0], Call::kPipe);
    fake().Opened(fds[1], Call::kPipe);
    return 0;
  }

  static int EpollCreate(int flags) {
    const int fd = Wrap<Call::kEpollCreate, &Kernel::epoll_create1>::Go(flags);
    fake().Opened(fd, Call::kEpollCreate);
    return fd;
  }

  // Reported after the work: FailNth.
  static int Close(int fd) {
    const int result = fake().below_.close(fd);
    fake().Closed(fd, result != 0);
    const int error = fake().Strike(Call::kClose);
    return error == 0 ? result : Failed<int>(error);
  }

  // Fails, is short, or forwards.
  template <auto kMember, Call kCall, class Buffer, class... Offset>
  static ssize_t Transfer(int fd, Buffer* buffer, size_t size, Offset... offset) {
    const int error = fake().Strike(kCall);
    if (error > 0) return Failed<ssize_t>(error);
    if (error == FakeKernel::kEnd) return 0;
    if (error == FakeKernel::kHalf) size = (size + 1) / 2;
    return (fake().below_.*kMember)(fd, buffer, size, offset...);
  }

  static void* Mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
    void* const at = Wrap<Call::kMmap, &Kernel::mmap>::Go(address, size, protection, flags, fd, offset);
    if (at != MAP_FAILED) fake().Mapped(reinterpret_cast<uintptr_t>(at), size);
    return at;
  }

  static int Munmap(void* address, size_t size) {
    fake().Unmapped(reinterpret_cast<uintptr_t>(address), size);
    const int result = fake().below_.munmap(address, size);
    const int error = fake().Strike(Call::kMunmap);
    return error == 0 ? result : Failed<int>(error);
  }

  static pid_t Gettid() { return fake().below_.gettid(); }
  static pid_t Getpid() { return fake().below_.getpid(); }
  static uid_t Geteuid() { return fake().below_.geteuid(); }

  static constexpr Kernel Table() {
    Kernel table = {};
    table.perf_event_open = PerfEventOpen;
    table.ioctl = Wrap<Call::kIoctl, &Kernel::ioctl>::Go;
    table.read = Transfer<&Kernel::read, Call::kRead, void>;
    table.pread = Transfer<&Kernel::pread, Call::kPread, void, off_t>;
    table.write = Transfer<&Kernel::write, Call::kWrite, const void>;
    table.close = Close;
    table.mmap = Mmap;
    table.munmap = Munmap;
    table.open = Open;
    table.fstat = Wrap<Call::kFstat, &Kernel::fstat>::Go;
    table.fchmod = Wrap<Call::kFchmod, &Kernel::fchmod>::Go;
    table.rename = Wrap<Call::kRename, &Kernel::rename>::Go;
    table.unlink = Wrap<Call::kUnlink, &Kernel::unlink>::Go;
    table.fcntl = Wrap<Call::kFcntl, &Kernel::fcntl>::Go;
    table.pipe2 = Pipe;
    table.clock_gettime = Wrap<Call::kClockGettime, &Kernel::clock_gettime>::Go;
    table.nanosleep = Wrap<Call::kNanosleep, &Kernel::nanosleep>::Go;
    table.getrusage = Wrap<Call::kGetrusage, &Kernel::getrusage>::Go;
    table.getrlimit = Wrap<Call::kGetrlimit, &Kernel::getrlimit>::Go;
    table.capget = Wrap<Call::kCapget, &Kernel::capget>::Go;
    table.prctl = Wrap<Call::kPrctl, &Kernel::prctl>::Go;
    table.fork = Wrap<Call::kFork, &Kernel::fork>::Go;
    table.execvp = Wrap<Call::kExec, &Kernel::execvp>::Go;
    table.wait4 = Wrap<Call::kWait, &Kernel::wait4>::Go;
    table.kill = Wrap<Call::kKill, &Kernel::kill>::Go;
    table.sigaction = Wrap<Call::kSigaction, &Kernel::sigaction>::Go;
    table.sigprocmask = Wrap<Call::kSigprocmask, &Kernel::sigprocmask>::Go;
    table.epoll_create1 = EpollCreate;
    table.epoll_ctl = Wrap<Call::kEpollCtl, &Kernel::epoll_ctl>::Go;
    table.epoll_wait = Wrap<Call::kEpollWait, &Kernel::epoll_wait>::Go;
    table.gettid = Gettid;
    table.getpid = Getpid;
    table.geteuid = Geteuid;
    return table;
  }
};

namespace {

constexpr Kernel kFakeTable = FakeCalls::Table();

// Returns false if sys::Kernel has a member that this file lacks.
bool IsComplete(const Kernel& table) {
  static_assert(sizeof(Kernel) % sizeof(void*) == 0);
  std::array<void*, sizeof(Kernel) / sizeof(void*)> members;
  memcpy(members.data(), &table, sizeof(table));
  return std::find(members.begin(), members.end(), nullptr) == members.end();
}

}  // namespace

FakeKernel::FakeKernel() {
  REQUIRE(IsComplete(kFakeTable));
  REQUIRE(g_fake.exchange(this) == nullptr);
  before_ = sys::ExchangeKernel(&kFakeTable);
}

FakeKernel::~FakeKernel() {
  sys::ExchangeKernel(before_);
  g_fake = nullptr;
}

void FakeKernel::FailNth(uint64_t n, int error, Call only, uint64_t times) {
  struck_ = Call::kAny;
  error_ = error;
  only_ = only;
  left_ = static_cast<int64_t>(n);
  times_ = static_cast<int64_t>(times);
}

void FakeKernel::FailAll(Call call, int error) { always_[static_cast<size_t>(call)] = error; }

void FakeKernel::Forgive() {
  times_ = 0;
  for (std::atomic<int>& error : always_) error = 0;
}

int FakeKernel::Strike(Call call) {
  ++calls_[static_cast<size_t>(Call::kAny)];
  ++calls_[static_cast<size_t>(call)];
  const bool meant = only_ == Call::kAny || only_ == call;
  if (meant && times_ > 0) {
    const int64_t left = left_.fetch_sub(1);
    if (left <= 1 && left > 1 - times_) {
      struck_ = call;
      return error_;
    }
  }
  return always_[static_cast<size_t>(call)];
}

void FakeKernel::Opened(int fd, Call by) {
  if (fd < 0) return;
  const int error = errno;  // The bookkeeping must not change the errno that the caller sees.
  const std::lock_guard lock(mutex_);
  fds_[fd] = by;
  errno = error;
}

void FakeKernel::Closed(int fd, bool unknown) {
  const std::lock_guard lock(mutex_);
  fds_.erase(fd);
  if (unknown) closed_unopened_.insert(fd);
}

void FakeKernel::Mapped(uintptr_t at, size_t size) {
  const std::lock_guard lock(mutex_);
  mappings_[at] = size;
}

void FakeKernel::Unmapped(uintptr_t at, size_t size) {
  const std::lock_guard lock(mutex_);
  const auto found = mappings_.find(at);
  if (found != mappings_.end() && found->second == size) mappings_.erase(found);
}

std::string FakeKernel::Leaks() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [fd, by] : fds_) text += absl::StrFormat("descriptor %d of %s; ", fd, CallName(by));
  for (const auto& [at, size] : mappings_) text += absl::StrFormat("%d bytes mapped at %#x; ", size, at);
  for (const int fd : closed_unopened_) text += absl::StrFormat("descriptor %d closed that was not open; ", fd);
  return text;
}

SweepTally SweepFaults(absl::FunctionRef<absl::Status()> fn, std::span<const int> errors) {
  {
    FakeKernel fake;
    const absl::Status status = fn();
    INFO(status);
    REQUIRE(status.ok());
    REQUIRE(fake.Leaks() == "");
  }
  SweepTally tally;
  const size_t before = OpenDescriptors();
  for (const int error : errors) {
    for (uint64_t n = 1;; ++n) {
      FakeKernel fake;
      fake.FailNth(n, error);
      const absl::Status status = fn();
      INFO("call " << n << " (" << CallName(fake.struck()) << ") failed with " << strerror(error) << " -> " << status);
      REQUIRE(fake.Leaks() == "");
      REQUIRE(OpenDescriptors() == before);
      if (fake.struck() == Call::kAny) {
        REQUIRE(status.ok());
        break;
      }
      REQUIRE(n < kLongestSweep);
      ++tally.calls;
      ++(status.ok() ? tally.survived : tally.refused);
    }
  }
  return tally;
}

}  // namespace perfkit::testing
