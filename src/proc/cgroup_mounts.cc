// A line of mountinfo is "36 25 0:31 ROOT FOLDER rw,... [optional fields] - cgroup2 cgroup2 rw,...".
#include "src/proc/cgroup_mounts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "src/base/text.h"

namespace perfkit::proc {
namespace {

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  base::ForEachPiece(text, separator, [&](std::string_view piece) { pieces.push_back(piece); });
  return pieces;
}

// The kernel writes blanks and backslashes of paths as octal numbers (mangle_path in fs/seq_file.c): "\040".
std::string Unescaped(std::string_view text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string plain;
  for (size_t at = 0; at < text.size(); ++at) {
    const std::string_view digits = text.substr(at + 1, 3);
    if (text[at] == '\\' && digits.size() == 3 && std::ranges::all_of(digits, is_octal)) {
      plain += static_cast<char>((digits[0] - '0') << 6 | (digits[1] - '0') << 3 | (digits[2] - '0'));
      at += 3;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

std::optional<CgroupMount> ParseMount(std::string_view line, std::string_view controller) {
  const std::vector<std::string_view> fields = Split(line, ' ');
  const auto dash = std::find(fields.begin(), fields.end(), "-");
  if (dash - fields.begin() < 5 || fields.end() - dash < 4) return std::nullopt;
  const bool is_it = controller.empty()
                         ? dash[1] == "cgroup2"
                         : dash[1] == "cgroup" && std::ranges::count(Split(dash[3], ','), controller) != 0;
  if (!is_it) return std::nullopt;
  return CgroupMount{Unescaped(fields[3]), Unescaped(fields[4])};
}

}  // namespace

std::vector<CgroupMount> ParseCgroupMounts(std::string_view mountinfo, std::string_view controller) {
  std::vector<CgroupMount> mounts;
  base::ForEachPiece(mountinfo, '\n', [&](std::string_view line) {
    if (std::optional<CgroupMount> mount = ParseMount(line, controller)) mounts.push_back(*std::move(mount));
  });
  std::ranges::stable_sort(mounts, {}, [](const CgroupMount& mount) { return mount.root.size(); });
  return mounts;
}

}  // namespace perfkit::proc
