// Parses "rchar: 1\nread_bytes: 4096\n…" (proc_tid_io_accounting in fs/proc/base.c).
#include "src/proc/disk_reads.h"

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/sys/files.h"

namespace perfkit::proc {

std::optional<uint64_t> ParseDiskBytes(std::string_view io) {
  std::optional<uint64_t> bytes;
  base::ForEachPiece(io, '\n', [&](std::string_view line) {
    const auto [key, value] = base::Cut(line, ':');
    if (key == "read_bytes") bytes = base::ParseNumber(base::Trim(value));
  });
  return bytes;
}

std::optional<uint64_t> ReadDiskBytes(pid_t tid) {
  constexpr size_t kMaxBytes = 4096;
  const absl::StatusOr<std::string> io = sys::ReadFile(absl::StrFormat("/proc/self/task/%d/io", tid), kMaxBytes);
  return io.ok() ? ParseDiskBytes(*io) : std::nullopt;
}

}  // namespace perfkit::proc
