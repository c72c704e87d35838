// Parses breakpoints (tools/perf/util/parse-events.c, parse_events_add_breakpoint).
#include "src/event/breakpoint.h"

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/event/parse_error.h"
#include "src/sys/perf_abi.h"

namespace perfkit::event {
namespace {

// perf's defaults. Execution has the size of a long (man perf_event_open, bp_len).
constexpr uint64_t kDefaultBytes = 4;
constexpr uint64_t kExecuteBytes = sizeof(long);
constexpr uint64_t kMaxBytes = 8;

// Distinguishes an access ("rw") from modifiers ("u"): their letters do not overlap.
bool IsAccess(std::string_view text) {
  return !text.empty() && text.find_first_not_of("rwx") == std::string_view::npos;
}

// Letters to HW_BREAKPOINT_* bits.
absl::Status ParseAccess(std::string_view whole, std::string_view text, uint32_t& kind) {
  for (size_t i = 0; i < text.size(); ++i) {
    const uint32_t bit = text[i] == 'r' ? sys::kBreakRead : text[i] == 'w' ? sys::kBreakWrite : sys::kBreakExecute;
    if ((kind & bit) != 0) {
      return WrongAt(whole, text.substr(i), absl::StrFormat("access '%s' is written twice", text.substr(i, 1)));
    }
    kind |= bit;
  }
  if ((kind & sys::kBreakExecute) != 0 && kind != sys::kBreakExecute) {
    return WrongAt(whole, text, "'x' stands alone: no CPU watches one place for execution and for access at once");
  }
  return absl::OkStatus();
}

}  // namespace

// Leaves alignment to the kernel: CPUs differ, and the error for its EINVAL contains the event with its address.
absl::Status FillBreakpoint(std::string_view whole, std::string_view body, EventConfig& config,
                            std::optional<std::string_view>& modifiers) {
  const auto [range, rest] = base::Cut(body, ':');
  const auto [address_text, length_text] = base::Cut(range, '/');
  const std::optional<uint64_t> address = base::ParsePrefixed(address_text);
  if (!address) {
    return WrongAt(
        whole, address_text,
        absl::StrFormat("'%s' is no address; a breakpoint is written 'mem:0x601040/8:rw'", Printable(address_text)));
  }
  // After the address there may be an access, modifiers, both or neither: "mem:A:rw:u", "mem:A:u". An empty piece after
  // a colon counts as modifiers, whose parser refuses it.
  const auto [access, tail] = base::Cut(rest, ':');
  const bool has_access = IsAccess(access);
  if (!has_access && range.size() < body.size()) modifiers = rest;
  if (has_access && access.size() < rest.size()) modifiers = tail;
  uint32_t kind = 0;
  if (absl::Status parsed = ParseAccess(whole, has_access ? access : "rw", kind); !parsed.ok()) return parsed;
  const bool has_length = address_text.size() < range.size();
  const std::optional<uint64_t> length = has_length                   ? base::ParsePrefixed(length_text)
                                         : kind == sys::kBreakExecute ? kExecuteBytes
                                                                      : kDefaultBytes;
  if (!length || *length == 0 || *length > kMaxBytes) {
    return WrongAt(
        whole, length_text,
        absl::StrFormat("'%s' is no length; a breakpoint watches 1, 2, 4 or 8 bytes", Printable(length_text)));
  }
  config.breakpoint_kind = kind;
  config.parts.push_back({.type = sys::kTypeBreakpoint,
                          .config = 0,
                          .config1 = *address,
                          .config2 = *length,
                          .config3 = 0,
                          .pmu = {},
                          .only_cpus = {}});
  return absl::OkStatus();
}

}  // namespace perfkit::event
