// One note for each kind, however often it happens: a session that runs for weeks reduces all the time.
#include "src/session/reductions.h"

#include <iterator>
#include <string_view>
#include <tuple>

#include "absl/strings/str_format.h"

namespace perfkit::session {
namespace {

struct ReductionText {
  std::string_view why, what;
};

constexpr std::string_view kMemory = "SessionOptions::memory_bytes";
constexpr ReductionText kTexts[] = {
    {kMemory, "older samples were merged, and have no times"},
    {"slow unwinding", "dumps of stacks were dropped"},
    {kMemory, "stacks were cut to their leaf or module"},
    {kMemory, "new addresses became \"[other addresses]\" of their modules"},
    {kMemory, "the oldest zones and frames were dropped"},
    {kMemory, "the oldest parts of tasks were dropped"},
    {"the limit of ended threads", "those that ended early were summed up by name"},
};

}  // namespace

void Reductions::Note(const Counts& counts, uint64_t now_ns) {
  const std::array<uint64_t, 7> now = {counts.times, counts.dumps,      counts.stacks, counts.addresses,
                                       counts.zones, counts.task_parts, counts.threads};
  for (size_t i = 0; i < now.size(); ++i) {
    Kind& kind = kinds_[i];
    if (now[i] > kind.count) {
      if (kind.times++ == 0) kind.after_ns = seen_ns_, kind.before_ns = now_ns;
      kind.last_ns = now_ns;
    }
    kind.count = now[i];
  }
  seen_ns_ = now_ns;
}

std::vector<std::string> Reductions::Notes() const {
  static_assert(std::size(kTexts) == std::tuple_size_v<decltype(kinds_)>);
  const auto ms = [this](uint64_t ns) { return static_cast<double>(ns - start_ns_) / 1e6; };
  std::vector<std::string> notes;
  for (size_t i = 0; i < kinds_.size(); ++i) {
    const Kind& kind = kinds_[i];
    if (kind.times == 0) continue;
    notes.push_back(absl::StrFormat("%.1f to %.1f ms after the start, because of %s: %s", ms(kind.after_ns),
                                    ms(kind.before_ns), kTexts[i].why, kTexts[i].what));
    if (kind.times == 1) continue;
    absl::StrAppendFormat(&notes.back(), "; again %d %s, the last time %.1f ms after the start", kind.times - 1,
                          kind.times == 2 ? "time" : "times", ms(kind.last_ns));
  }
  return notes;
}

}  // namespace perfkit::session
