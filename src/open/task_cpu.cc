// Resolves targets to threads and CPUs, through /proc and sysfs.
#include "src/open/task_cpu.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/base/cpu_list.h"
#include "src/base/text.h"
#include "src/proc/threads.h"
#include "src/sys/files.h"

namespace perfkit::open {
namespace {

absl::StatusOr<std::vector<TaskCpu>> ThreadsOf(int pid) {
  const absl::StatusOr<std::vector<pid_t>> threads = proc::ListThreads(pid);
  if (!threads.ok()) return sys::WithDescriptorRemedy(threads.status());
  std::vector<TaskCpu> task_cpus;
  for (const pid_t tid : *threads) task_cpus.push_back({.pid = tid});
  return task_cpus;
}

// Reads `online` or `present`: Documentation/ABI/testing/sysfs-devices-system-cpu.
absl::StatusOr<std::string> ReadCpus(std::string_view state) {
  return sys::ReadFile(absl::StrFormat("/sys/devices/system/cpu/%s", state));
}

absl::StatusOr<std::vector<int>> CpusThatAre(std::string_view state) {
  const auto text = ReadCpus(state);
  if (!text.ok()) {
    return sys::WithMountRemedy(sys::WithDescriptorRemedy(text.status()), sys::KernelFiles::kSysfs, "/sys");
  }
  std::optional<std::vector<int>> cpus = base::ParseCpuList(*text);
  if (cpus && !cpus->empty()) return *std::move(cpus);
  return absl::UnavailableError(absl::StrFormat("sysfs does not say which CPUs are %s", state));
}

absl::StatusOr<std::vector<TaskCpu>> Cpus(const Target& target, const std::vector<int>& only_cpus) {
  const auto online = CpusThatAre("online");
  if (!online.ok()) {
    return absl::Status(online.status().code(), absl::StrFormat("%s: %s", Describe(target), online.status().message()));
  }
  std::vector<TaskCpu> task_cpus;
  for (const int cpu : *online) {
    const bool wanted = target.kind == Target::Kind::kSystem || cpu == target.id;
    const bool allowed = only_cpus.empty() || std::count(only_cpus.begin(), only_cpus.end(), cpu) != 0;
    if (wanted && allowed) task_cpus.push_back({.pid = -1, .cpu = cpu});
  }
  if (!task_cpus.empty()) return task_cpus;
  return absl::NotFoundError(absl::StrFormat("%s is not online, or the event does not count there; online: %s",
                                             Describe(target), base::Trim(ReadCpus("online").value_or("?"))));
}

}  // namespace

absl::StatusOr<std::vector<TaskCpu>> TaskCpusOf(const Target& target, const std::vector<int>& only_cpus) {
  switch (target.kind) {
    case Target::Kind::kThisThread: return std::vector<TaskCpu>{TaskCpu{}};
    case Target::Kind::kThread: return std::vector<TaskCpu>{TaskCpu{.pid = target.id}};
    case Target::Kind::kProcess: return ThreadsOf(target.id);
    case Target::Kind::kAllThreads: return ThreadsOf(0);
    case Target::Kind::kCpu:
    case Target::Kind::kSystem: return Cpus(target, only_cpus);
  }
  return absl::InvalidArgumentError("no such kind of target");
}

absl::StatusOr<std::vector<int>> PresentCpus() { return CpusThatAre("present"); }

std::string Describe(const Target& target) {
  switch (target.kind) {
    case Target::Kind::kThisThread: return "this thread";
    case Target::Kind::kThread: return absl::StrFormat("thread %d", target.id);
    case Target::Kind::kProcess: return absl::StrFormat("process %d", target.id);
    case Target::Kind::kAllThreads: return "all threads of this process";
    case Target::Kind::kCpu: return absl::StrFormat("CPU %d", target.id);
    case Target::Kind::kSystem: return "the whole system";
  }
  return "nothing";
}

}  // namespace perfkit::open
