// "202 0x7f… 0x80 0x0 0x0 0x0 0x0 0x7ffd… 0x7f…": number, arguments, sp, pc; or "-1 sp pc"; or "running".
#include "src/proc/blocked_call.h"

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/sys/files.h"

namespace perfkit::proc {
namespace {

constexpr size_t kMaxFileBytes = 4096;

bool ParseHex(std::string_view text, uint64_t& value) {
  const std::optional<uint64_t> number = text.starts_with("0x") ? base::ParsePrefixed(text) : std::nullopt;
  value = number.value_or(0);
  return number.has_value();
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

std::optional<BlockedCall> ReadBlockedCall(pid_t tid) {
  const absl::StatusOr<std::string> text =
      sys::ReadFile(absl::StrFormat("/proc/self/task/%d/syscall", tid), kMaxFileBytes);
  return text.ok() ? ParseBlockedCall(*text) : std::nullopt;
}

std::optional<uint64_t> ReadTimesRun(pid_t tid) {
  const absl::StatusOr<std::string> text =
      sys::ReadFile(absl::StrFormat("/proc/self/task/%d/schedstat", tid), kMaxFileBytes);
  if (!text.ok()) return std::nullopt;
  std::string_view last;
  base::ForEachPiece(base::Trim(*text), ' ', [&](std::string_view word) { last = word; });
  return base::ParseNumber(last);
}

}  // namespace perfkit::proc
