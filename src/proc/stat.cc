// Parses "PID (name) S PPID …". A name may contain blanks and parentheses, so the fields begin after the last one.
#include "src/proc/stat.h"

#include <time.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/sys/clock.h"
#include "src/sys/files.h"

namespace perfkit::proc {
namespace {

constexpr size_t kMaxStatBytes = 4096;
// The number of the first field after the name, as man proc_pid_stat counts them.
constexpr size_t kFirst = 3;
constexpr size_t kParent = 4;
constexpr size_t kFlags = 9;
constexpr size_t kStartTime = 22;
constexpr int kTries = 3;
constexpr uint64_t kTickNs = 10'000'000;      // 1 / USER_HZ of include/uapi/asm-generic/param.h
constexpr uint64_t kKernelThread = 0x200000;  // PF_KTHREAD of include/linux/sched.h
// startcode, endcode, startstack; start_data, end_data, start_brk, arg_start, arg_end, env_start, env_end.
constexpr size_t kOfImage[] = {26, 27, 28, 45, 46, 47, 48, 49, 50, 51};

}  // namespace

std::optional<Stat> ParseStat(std::string_view text) {
  const size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  std::vector<std::string_view> fields;
  base::ForEachPiece(base::Trim(text.substr(name_end + 1)), ' ',
                     [&](std::string_view field) { fields.push_back(field); });
  if (fields.size() <= kOfImage[std::size(kOfImage) - 1] - kFirst) return std::nullopt;
  const std::optional<pid_t> parent = base::ParseNumber<pid_t>(fields[kParent - kFirst]);
  if (!parent) return std::nullopt;
  const uint64_t flags = base::ParseNumber(fields[kFlags - kFirst]).value_or(0);
  Stat stat{.parent = *parent, .image = {}, .is_of_kernel = (flags & kKernelThread) != 0};
  stat.start_ticks = base::ParseNumber(fields[kStartTime - kFirst]).value_or(0);
  for (const size_t field : kOfImage) stat.image.append(fields[field - kFirst]).append(" ");
  return stat;
}

std::optional<Stat> ReadStat(pid_t pid, const std::string& proc) {
  const absl::StatusOr<std::string> text = sys::ReadFile(absl::StrFormat("%s/%d/stat", proc, pid), kMaxStatBytes);
  return text.ok() ? ParseStat(*text) : std::nullopt;
}

std::optional<uint64_t> ReadStartNs(pid_t pid, const std::string& proc) {
  const std::optional<Stat> stat = ReadStat(pid, proc);
  if (!stat) return std::nullopt;
  // If this thread waits for its CPU between the two readings, their difference is too small, and the start too early.
  // It is never too late: a process's own list of JIT code must not seem to be older than the process.
  uint64_t booted_ns = 0;
  for (int i = 0; i < kTries; ++i) {
    const uint64_t now_ns = sys::OwnClockNs(CLOCK_REALTIME);
    booted_ns = std::max(booted_ns, now_ns - sys::OwnClockNs(CLOCK_BOOTTIME));
  }
  return booted_ns + stat->start_ticks * kTickNs;
}

}  // namespace perfkit::proc
