// Parses /proc/PID/maps: "7f00-8f00 r-xp 00001000 fd:01 1234    /usr/lib/x.so". man proc(5).
#include "src/proc/maps.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/sys/files.h"

namespace perfkit::proc {
namespace {

// Removes and returns the next word of `line`.
std::string_view TakeWord(std::string_view& line) {
  const size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const size_t end = std::min(line.find(' ', begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

template <class T>
bool ParseHexPair(std::string_view text, char separator, T& first, T& second) {
  const auto [left, right] = base::Cut(text, separator);
  const std::optional<T> a = base::ParseNumber<T>(left, 16), b = base::ParseNumber<T>(right, 16);
  if (!a || !b) return false;
  first = *a;
  second = *b;
  return true;
}

}  // namespace

std::optional<MapLine> ParseMapLine(std::string_view line) {
  MapLine map;
  if (!ParseHexPair(TakeWord(line), '-', map.begin, map.end) || map.begin > map.end) return std::nullopt;
  const std::string_view rights = TakeWord(line);
  if (rights.size() != 4) return std::nullopt;
  map.readable = rights[0] == 'r';
  map.writable = rights[1] == 'w';
  map.executable = rights[2] == 'x';
  map.shared = rights[3] == 's';
  const std::optional<uint64_t> offset = base::ParseNumber(TakeWord(line), 16);
  if (!offset || !ParseHexPair(TakeWord(line), ':', map.device_major, map.device_minor)) return std::nullopt;
  const std::optional<uint64_t> inode = base::ParseNumber(TakeWord(line));
  if (!inode) return std::nullopt;
  map.file_offset = *offset;
  map.inode = *inode;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  map.path = line;
  return map;
}

absl::StatusOr<std::string> ReadMaps(pid_t pid, const std::string& proc) {
  return sys::ReadFile(absl::StrFormat("%s/%d/maps", proc, pid));
}

}  // namespace perfkit::proc
