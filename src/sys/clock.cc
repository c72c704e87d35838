// The offsets of a time namespace are fixed before its first process enters it. A process enters one when it is forked,
// so one reading is enough until then. One that enters it by setns must do so before it uses perfkit
// (SamplerOptions::clock_id).
#include "src/sys/clock.h"

#include <fcntl.h>
#include <unistd.h>

#include <optional>

#include "src/base/number.h"
#include "src/base/text.h"
#include "src/sys/fork_registry.h"

namespace perfkit::sys {
namespace {

// PROC_TIME_INIT_INO (include/linux/proc_ns.h): the namespace of the host, which has no offsets.
constexpr std::string_view kHost = "time:[4026531834]";

// Returns true if this process is in a time namespace of its own. /proc/self/timens_offsets alone does not tell: it has
// the offsets of the namespace that children will be in.
bool IsInNamespace() {
  char name[64];
  const ssize_t size = ::readlink("/proc/self/ns/time", name, sizeof(name));
  return size > 0 && std::string_view(name, static_cast<size_t>(size)) != kHost;
}

}  // namespace

constinit OwnClockOffsets own_clock_offsets;

// Lines are "monotonic  SECONDS  NANOSECONDS", the second part from 0 to 999,999,999 (kernel/time/namespace.c,
// show_offset).
ClockOffsets ParseClockOffsets(std::string_view text) {
  ClockOffsets offsets;
  base::ForEachPiece(text, '\n', [&](std::string_view line) {
    const auto [clock, rest] = base::Cut(base::Trim(line), ' ');
    const auto [seconds_text, ns_text] = base::Cut(base::Trim(rest), ' ');
    const std::optional<int64_t> seconds = base::ParseNumber<int64_t>(seconds_text);
    const std::optional<int64_t> ns = base::ParseNumber<int64_t>(base::Trim(ns_text));
    if (!seconds || !ns) return;
    const uint64_t offset = static_cast<uint64_t>(*seconds) * 1'000'000'000 + static_cast<uint64_t>(*ns);
    if (clock == "monotonic") offsets.monotonic_ns = offset;
    if (clock == "boottime") offsets.boottime_ns = offset;
  });
  return offsets;
}

// Not by the table of kernel.h: tests that replace it count the calls of what they test.
void OwnClockOffsets::Read() {
  // A child may be in another namespace. Lives as long as the process: destructors of other objects may read clocks.
  static ForkListener& forget = *new ForkListener(
      [](void* own) { static_cast<OwnClockOffsets*>(own)->known.store(false, std::memory_order_relaxed); }, this);
  (void)forget;
  ClockOffsets offsets;
  char text[256];
  const int fd = IsInNamespace() ? kLinux.open("/proc/self/timens_offsets", O_RDONLY) : -1;
  const ssize_t size = fd >= 0 ? kLinux.read(fd, text, sizeof(text)) : 0;
  if (fd >= 0) kLinux.close(fd);
  if (size > 0) offsets = ParseClockOffsets({text, static_cast<size_t>(size)});
  monotonic_ns.store(offsets.monotonic_ns, std::memory_order_relaxed);  // Ordered by `known`.
  boottime_ns.store(offsets.boottime_ns, std::memory_order_relaxed);    // Ordered by `known`.
  known.store(true, std::memory_order_release);
}

}  // namespace perfkit::sys
