// Parses the kernel's CPU lists (lib/bitmap-str.c writes them).
#include "src/base/cpu_list.h"

#include "src/base/number.h"
#include "src/base/text.h"

namespace perfkit::base {
namespace {

// Appends one CPU or one range. Returns false if it is malformed.
bool AppendRange(std::string_view text, std::vector<int>& cpus) {
  const bool is_range = text.find('-') != std::string_view::npos;
  const auto [low, high] = Cut(text, '-');
  const std::optional<unsigned> first = ParseNumber<unsigned>(low);
  const std::optional<unsigned> last = is_range ? ParseNumber<unsigned>(high) : first;
  if (!first || !last || *first > *last || *last >= kMaxCpus) return false;
  // Ranges may overlap, so the sum is bounded too.
  if (cpus.size() + (*last - *first) >= kMaxCpus) return false;
  for (unsigned cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  return true;
}

}  // namespace

std::optional<std::vector<int>> ParseCpuList(std::string_view text) {
  std::vector<int> cpus;
  text = Trim(text);
  bool good = !text.ends_with(',');
  ForEachPiece(text, ',', [&](std::string_view piece) { good = good && AppendRange(piece, cpus); });
  if (!good) return std::nullopt;
  return cpus;
}

}  // namespace perfkit::base
