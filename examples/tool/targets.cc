// Parses, and leaves out what is named twice.
#include "targets.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace tool {
namespace {

constexpr double kMinSeconds = 0.001, kMaxSeconds = 1e6;
constexpr int kMaxRange = 4096;

// Appends the numbers from `first` to `last`, which are one or two ends of a range.
bool AddRange(std::string_view first, std::string_view last, std::vector<int>* out) {
  int from = 0, to = 0;
  if (!ParseNumber(first, 0, &from) || !ParseNumber(last, from, &to) || to - from > kMaxRange) return false;
  for (int i = from; i <= to; ++i) out->push_back(i);
  return true;
}

bool ParseList(std::string_view list, bool ranges, std::vector<int>* out) {
  for (;;) {
    const size_t comma = list.find(',');
    const std::string_view word = list.substr(0, comma);
    const size_t dash = ranges ? word.find('-') : word.npos;
    const std::string_view last = dash == word.npos ? word : word.substr(dash + 1);
    if (!AddRange(word.substr(0, dash), last, out)) return false;
    if (comma == list.npos) return true;
    list.remove_prefix(comma + 1);
  }
}

// The process that a task belongs to; `task` itself if that cannot be read: opening it tells why.
int ProcessOf(int task) {
  std::ifstream status("/proc/" + std::to_string(task) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Tgid:")) return std::atoi(line.c_str() + 5);
  }
  return task;
}

// In order, each once.
std::vector<int> Distinct(std::vector<int> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

bool ParseSeconds(std::string_view text, std::optional<double>* out) {
  double seconds = 0;
  if (!ParseNumber(text, kMinSeconds, &seconds) || seconds > kMaxSeconds) return false;
  *out = seconds;
  return true;
}

bool ParseIds(std::string_view list, std::vector<int>* out) { return ParseList(list, false, out); }
bool ParseCpus(std::string_view list, std::vector<int>* out) { return ParseList(list, true, out); }

absl::StatusOr<std::vector<perfkit::Target>> MakeTargets(const TargetNames& names, bool inherit) {
  using perfkit::Target;
  if (names.has_cpus() && (!names.processes.empty() || !names.threads.empty())) {
    return absl::InvalidArgumentError(
        "-a and --cpu name whole CPUs, -p and -t tasks, which run on them: say one of them");
  }
  // The kernel takes 0 for the thread that asks.
  if (std::ranges::count(names.processes, 0) != 0) return absl::InvalidArgumentError("-p: 0 is no process");
  if (std::ranges::count(names.threads, 0) != 0) return absl::InvalidArgumentError("-t: 0 is no thread");
  std::vector<Target> targets;
  for (const int cpu : Distinct(names.cpus)) targets.push_back(Target::Cpu(cpu));
  if (names.whole_system && targets.empty()) targets.push_back(Target::System());

  std::vector<int> processes = names.processes;
  for (int& pid : processes) pid = ProcessOf(pid);  // -p takes any thread's id
  processes = Distinct(std::move(processes));
  for (const int pid : processes)
    targets.push_back(inherit ? Target::Process(pid) : Target::Process(pid).WithoutInherit());
  for (const int tid : Distinct(names.threads)) {
    if (!std::binary_search(processes.begin(), processes.end(), ProcessOf(tid))) targets.push_back(Target::Thread(tid));
  }
  return targets;
}

}  // namespace tool
