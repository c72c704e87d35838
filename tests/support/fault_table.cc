// The fault table: which errors each call has, the runs with each of them, and the rows.
#include "tests/support/fault_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/support/work.h"

namespace perfkit::testing {
namespace {

constexpr const char* kTableFile = "PERFKIT_FAULT_TABLE";

// Returns the errors of a call by its man page in section 2, and the ways in which it does less than asked. Without
// EBADF and EFAULT, which only a defect of perfkit can cause.
std::vector<int> ErrorsOf(Call call) {
  switch (call) {
    case Call::kPerfEventOpen:
      return {EACCES, EPERM,  EBUSY, EINVAL, ENODEV,     ENOENT, ENOSPC, EMFILE,
              ENFILE, ENOMEM, E2BIG, ESRCH,  EOPNOTSUPP, ENOSYS, EINTR};
    case Call::kIoctl: return {EINVAL, ENOTTY, EBUSY, ENOMEM, EINTR};
    case Call::kRead: return {EINTR, EIO, ENOSPC, FakeKernel::kHalf, FakeKernel::kEnd};
    case Call::kPread: return {EINTR, EIO, ESRCH, FakeKernel::kHalf, FakeKernel::kEnd};
    case Call::kWrite: return {EINTR, EIO, ENOSPC, EDQUOT, FakeKernel::kHalf};
    case Call::kClose: return {EINTR, EIO, ENOSPC};
    case Call::kMmap: return {EPERM, ENOMEM, EAGAIN, ENFILE, EINVAL, EACCES};
    case Call::kMunmap: return {EINVAL, ENOMEM};
    case Call::kOpen: return {EACCES, ENOENT, EMFILE, ENFILE, EINTR, ENOMEM, ELOOP, EIO};
    case Call::kFstat: return {ENOMEM, EOVERFLOW, EIO};
    case Call::kFchmod: return {EPERM, EROFS, EIO};
    case Call::kRename: return {EACCES, ENOSPC, EROFS, EXDEV};
    case Call::kUnlink: return {EACCES, EBUSY, EROFS};
    case Call::kFcntl: return {EMFILE, EINVAL, EAGAIN};
    case Call::kPipe: return {EMFILE, ENFILE};
    case Call::kClockGettime: return {};  // a clock that exists does not fail
    case Call::kNanosleep: return {EINTR};
    case Call::kGetrusage: return {EINVAL};
    case Call::kGetrlimit: return {EINVAL};
    case Call::kCapget: return {EINVAL, EPERM};
    case Call::kPrctl: return {EINVAL};
    case Call::kFork: return {EAGAIN, ENOMEM};
    case Call::kExec: return {ENOENT, EACCES, ENOEXEC, ENOMEM, E2BIG};
    case Call::kWait: return {EINTR, ECHILD};
    case Call::kKill: return {ESRCH, EPERM};
    case Call::kSigaction: return {EINVAL};
    case Call::kSigprocmask: return {EINVAL};
    case Call::kEpollCreate: return {EMFILE, ENFILE, ENOMEM};
    case Call::kEpollCtl: return {ENOMEM, ENOSPC, EPERM};
    case Call::kEpollWait: return {EINTR};
    case Call::kAny:
    case Call::kCount: break;
  }
  return {};
}

std::string ErrorName(int error) {
  if (error == FakeKernel::kHalf) return "half of the bytes";
  if (error == FakeKernel::kEnd) return "end of file";
  return strerrorname_np(error);
}

// An interruption is over after a while: a call that is repeated for as long as it is interrupted is right.
uint64_t Later(int error) { return error == EINTR ? 20 : FakeKernel::kAlways; }

// The uses of a call that fail, of `uses`.
std::set<uint64_t> Positions(uint64_t uses, bool all) {
  std::set<uint64_t> positions;
  for (uint64_t n = 1; n <= uses; ++n) {
    if (all || n <= 3 || n == uses / 2 || n == uses) positions.insert(n);
  }
  return positions;
}

size_t DescriptorsOpen() {
  const std::filesystem::directory_iterator list("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(list), end(list)));
}

// One fault: from the n-th use of `call` on, `times` calls fail with `error`. Call::kAny: none.
struct Fault {
  Call call = Call::kAny;
  int error = 0;
  uint64_t n = 0, times = 0;
};

class Run final : public Faults {
 public:
  explicit Run(const Fault& fault) : fault_(fault) {}

  void Begin() override {
    for (size_t i = 0; i < uses_.size(); ++i) uses_[i] = fake_.calls(static_cast<Call>(i));
    if (!none()) fake_.FailNth(fault_.n, fault_.error, fault_.call, fault_.times);
  }
  void End() override {
    fake_.Forgive();
    if (ended_) return;
    ended_ = true;
    for (size_t i = 0; i < uses_.size(); ++i) uses_[i] = fake_.calls(static_cast<Call>(i)) - uses_[i];
  }
  bool none() const override { return fault_.call == Call::kAny; }

  // Returns how often `call` was used between Begin and End.
  uint64_t uses(Call call) const { return uses_[static_cast<size_t>(call)]; }
  bool struck() const { return fake_.struck() != Call::kAny; }
  std::string Leaks() const { return fake_.Leaks(); }

 private:
  const Fault fault_;
  FakeKernel fake_;
  std::array<uint64_t, static_cast<size_t>(Call::kCount)> uses_{};
  bool ended_ = false;
};

class Sweep {
 public:
  Sweep(absl::FunctionRef<absl::Status(Faults&)> operation, bool each_use)
      : operation_(operation), each_use_(each_use || getenv("PERFKIT_FAULT_POSITIONS") != nullptr) {}

  // Runs without a fault, twice: the first run fills caches. Learns which calls there are.
  void Learn() {
    RunClean();
    descriptors_ = DescriptorsOpen();
    RunClean();
  }

  void FailEachCall() {
    for (size_t i = 1; i < uses_.size(); ++i) {
      if (uses_[i] != 0) FailCall(static_cast<Call>(i));
    }
  }

  std::string Row(const std::string& name) const {
    std::string calls;
    for (size_t i = 1; i < uses_.size(); ++i) {
      if (uses_[i] == 0) continue;
      absl::StrAppend(&calls, calls.empty() ? "" : ", ", CallName(static_cast<Call>(i)), " ", uses_[i]);
    }
    return absl::StrFormat("| %s | %s | %d | %d | %d |\n", name, calls, refused_ + went_on_, refused_, went_on_);
  }

 private:
  void RunClean() {
    Run run({});
    const absl::Status status = operation_(run);
    run.End();
    INFO(status);
    REQUIRE(status.ok());
    REQUIRE(run.Leaks() == "");
    for (size_t i = 0; i < uses_.size(); ++i) uses_[i] = run.uses(static_cast<Call>(i));
  }

  void FailCall(Call call) {
    std::vector<int> errors = ErrorsOf(call);
    if (kSanitized && !errors.empty()) errors.resize(1);
    const uint64_t uses = uses_[static_cast<size_t>(call)];
    for (const int error : errors) {
      bool struck = false;
      for (const uint64_t n : Positions(uses, each_use_)) {
        struck = FailWith({call, error, n, 1}) || struck;
        FailWith({call, error, n, Later(error)});
      }
      // Whether some calls are made depends on time: on a busy machine each run may do without them.
      INFO(CallName(call) << " " << ErrorName(error) << ": a hole in the table");
      if (getenv(kTableFile) != nullptr) CHECK(struck);
    }
    INFO("after the faults of " << CallName(call));
    RunClean();  // no fault is remembered
  }

  // Returns false if the call was not made that often.
  bool FailWith(const Fault& fault) {
    Run run(fault);
    INFO("from use " << fault.n << " of " << CallName(fault.call) << " on " << fault.times
                     << " times: " << ErrorName(fault.error));
    const absl::Status status = operation_(run);
    run.End();
    INFO(status);
    REQUIRE(run.Leaks() == "");
    REQUIRE(DescriptorsOpen() == descriptors_);
    if (!run.struck()) return false;
    ++(status.ok() ? went_on_ : refused_);
    return true;
  }

  const absl::FunctionRef<absl::Status(Faults&)> operation_;
  const bool each_use_;
  std::array<uint64_t, static_cast<size_t>(Call::kCount)> uses_{};
  size_t descriptors_ = 0;
  uint64_t refused_ = 0, went_on_ = 0;
};

}  // namespace

void RunFaults(const std::string& name, absl::FunctionRef<absl::Status(Faults&)> operation, bool each_use) {
  INFO(name);
  Sweep sweep(operation, each_use);
  sweep.Learn();
  sweep.FailEachCall();
  if (const char* file = getenv(kTableFile)) std::ofstream(file, std::ios::app) << sweep.Row(name);
}

}  // namespace perfkit::testing
