// What the calling thread may do with perf events, and which setting decides it.
//
// This is the only code that reads perf_event_paranoid and the capability sets; errors, retries and the doctor quote
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace perfkit::sys {

struct Rights {
  // /proc/sys/kernel/perf_event_paranoid; nullopt if it cannot be read (no perf in this kernel, or a sandbox).
  std::optional<int> paranoid;
  uint32_t euid = 0;
  // Effective CAP_PERFMON or CAP_SYS_ADMIN in the initial user namespace: the paranoid level does not bind this thread.
  // In another one, as in a container of an ordinary user, the capabilities do not count (perfmon_capable).
  bool perfmon = false;
  bool perfmon_elsewhere = false;  // The same in another user namespace.
  // Effective CAP_SYS_ADMIN in the initial user namespace. Uprobes require it (open/explain.cc).
  bool sys_admin = false;
  bool in_user_namespace = false;  // In another one than the initial user namespace.

  // Returns true if events of this process's own threads may include the kernel's work on their behalf.
  bool may_count_kernel() const { return perfmon || (paranoid && *paranoid <= 1); }
  // Returns true if events may count a whole CPU.
  bool may_watch_cpus() const { return perfmon || (paranoid && *paranoid <= 0); }
};

// Reads the settings now. `proc` is the mount point of procfs (tests use a copy).
Rights ReadRights(const std::string& proc = "/proc");

// The rights of the calling thread, which are read when they are first needed: most events are opened without a
// refusal, and reading takes 20 us. Not thread-safe.
class LazyRights {
 public:
  LazyRights() = default;
  LazyRights(const Rights& rights) : rights_(rights) {}  // Rights that were read already.

  // Reads the rights of the calling thread, if that was not done before.
  const Rights& get() const {
    if (!rights_) rights_ = ReadRights();
    return *rights_;
  }

 private:
  mutable std::optional<Rights> rights_;
};

// Returns text such as "kernel.perf_event_paranoid is 2, uid 1000, without CAP_PERFMON".
std::string DescribeRights(const Rights& rights);

// Returns what to add to a remedy that names root or a capability: in a user namespace, those of the namespace are of
// no use. Returns "" for other remedies and elsewhere.
std::string_view WhereRightsCount(std::string_view remedy, const Rights& rights);

}  // namespace perfkit::sys
