// Parses "202 0x7f… 0x80 0x0 0x0 0x0 0x0 0x7ffd… 0x7f…" (number, arguments, sp, pc), "-1 sp pc" and "running".
#include "src/proc/blocked_call.h"

#include <linux/prctl.h>

#include <array>
#include <span>

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/sys/files.h"
#include "src/sys/kernel.h"

namespace perfkit::proc {
namespace {

// A status file lists groups and CPUs before the switches, and may take several pages.
constexpr size_t kMaxFileBytes = 64 << 10;

std::string_view RemedyFor(const absl::Status& error) {
  if (absl::IsResourceExhausted(error)) return sys::kMoreDescriptors;
  if (absl::IsNotFound(error)) return "mount /proc; the kernel needs CONFIG_HAVE_ARCH_TRACEHOOK";
  // PR_GET_DUMPABLE returns 0, 1 or 2 (fs.suid_dumpable). Unless it is 1, the files belong to root (task_dump_owner).
  constexpr int kDumpable = 1;
  const int dumpable = sys::kernel().prctl(PR_GET_DUMPABLE, 0);
  if (dumpable >= 0 && dumpable != kDumpable) return "make the process dumpable (prctl PR_SET_DUMPABLE)";
  return "permit the file in the sandbox or security module that refuses it";
}

bool ParseHex(std::string_view text, uint64_t& value) {
  const std::optional<uint64_t> number = text.starts_with("0x") ? base::ParsePrefixed(text) : std::nullopt;
  value = number.value_or(0);
  return number.has_value();
}

sys::OwnedFd OpenFileOf(pid_t tid, std::string_view name) {
  return sys::OpenToRead(absl::StrFormat("/proc/self/task/%d/%s", tid, name).c_str());
}

// Reads a text of one line, which the kernel writes anew for each read at offset 0 (fs/seq_file.c, seq_read_iter).
// Returns "" if it can't be read as a whole.
std::string_view ReadLine(const sys::OwnedFd& file, std::span<char> room) {
  if (!file) return {};
  const ssize_t got =
      sys::RetryInterrupted([&] { return sys::kernel().pread(file.get(), room.data(), room.size(), 0); });
  const std::string_view text(room.data(), got > 0 ? static_cast<size_t>(got) : 0);
  return text.ends_with('\n') ? text : std::string_view();
}

std::optional<BlockedCall> CallIn(const sys::OwnedFd& file) {
  std::array<char, 256> room;  // A number, eight words in hexadecimal.
  return ParseBlockedCall(ReadLine(file, room));
}

// Without schedstat, the switches away: each ends one time that the thread ran.
std::optional<uint64_t> TimesRunIn(pid_t tid, const sys::OwnedFd& schedstat) {
  std::array<char, 128> room;  // Three numbers.
  if (const std::optional<uint64_t> times = ParseTimesRun(ReadLine(schedstat, room))) return times;
  const absl::StatusOr<std::string> status =
      sys::ReadFile(absl::StrFormat("/proc/self/task/%d/status", tid), kMaxFileBytes);
  return status.ok() ? ParseSwitches(*status) : std::nullopt;
}

}  // namespace

std::optional<BlockedCall> ParseBlockedCall(std::string_view text) {
  constexpr size_t kMaxWords = 9;
  std::array<std::string_view, kMaxWords + 1> words;
  size_t count = 0;
  base::ForEachPiece(base::Trim(text), ' ', [&](std::string_view word) {
    if (count < words.size()) words[count++] = word;
  });
  BlockedCall call;
  const std::optional<int32_t> number = count > 0 ? base::ParseNumber<int32_t>(words[0]) : std::nullopt;
  if (!number) return std::nullopt;
  call.syscall = *number;
  if (call.syscall == -1) {
    const bool whole = count == 3 && ParseHex(words[1], call.sp) && ParseHex(words[2], call.pc);
    return whole ? std::optional(call) : std::nullopt;
  }
  if (count != kMaxWords || call.syscall < 0) return std::nullopt;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    if (!ParseHex(words[1 + i], call.arguments[i])) return std::nullopt;
  }
  const bool whole = ParseHex(words[7], call.sp) && ParseHex(words[8], call.pc);
  return whole ? std::optional(call) : std::nullopt;
}

std::optional<BlockedCall> ReadBlockedCall(pid_t tid) { return CallIn(OpenFileOf(tid, "syscall")); }

absl::Status CanReadBlockedCalls() {
  const absl::Status status = sys::ReadFile("/proc/thread-self/syscall", kMaxFileBytes).status();
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrFormat("%s. Remedy: %s", status.message(), RemedyFor(status)));
}

// /proc/PID/schedstat: ns on a CPU, ns of waiting for one, and how often it ran. All are 0 if the kernel does not keep
// them (proc_pid_schedstat in fs/proc/base.c).
std::optional<uint64_t> ParseTimesRun(std::string_view schedstat) {
  std::string_view third;
  size_t count = 0;
  base::ForEachPiece(base::Trim(schedstat), ' ', [&](std::string_view word) {
    if (++count == 3) third = word;
  });
  const std::optional<uint64_t> times = count == 3 ? base::ParseNumber(third) : std::nullopt;
  return times && *times != 0 ? times : std::nullopt;
}

std::optional<uint64_t> ParseSwitches(std::string_view status) {
  uint64_t sum = 0;
  size_t found = 0;
  base::ForEachPiece(status, '\n', [&](std::string_view line) {
    const auto [key, value] = base::Cut(line, ':');
    if (key != "voluntary_ctxt_switches" && key != "nonvoluntary_ctxt_switches") return;
    const std::optional<uint64_t> number = base::ParseNumber(base::Trim(value));
    if (!number) return;
    sum += *number;
    ++found;
  });
  return found == 2 ? std::optional(sum) : std::nullopt;
}

std::optional<uint64_t> ReadTimesRun(pid_t tid) { return TimesRunIn(tid, OpenFileOf(tid, "schedstat")); }

ThreadFiles::ThreadFiles(pid_t tid)
    : tid_(tid), call_(OpenFileOf(tid, "syscall")), times_(OpenFileOf(tid, "schedstat")) {}
std::optional<BlockedCall> ThreadFiles::ReadBlockedCall() const { return CallIn(call_); }
std::optional<uint64_t> ThreadFiles::ReadTimesRun() const { return TimesRunIn(tid_, times_); }

// /proc/PID/stat: "1 (name) R ...". The name may have blanks and parentheses, so the last parenthesis counts.
char ParseState(std::string_view stat) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return '?';
  const std::string_view rest = stat.substr(name_end);  // ") R "
  return rest.size() > 3 && rest[1] == ' ' && rest[3] == ' ' ? rest[2] : '?';
}

char ReadState(pid_t tid) {
  const absl::StatusOr<std::string> stat =
      sys::ReadFile(absl::StrFormat("/proc/self/task/%d/stat", tid), kMaxFileBytes);
  return stat.ok() ? ParseState(*stat) : '?';
}

}  // namespace perfkit::proc
