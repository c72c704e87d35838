// Time with a label counts for each name that is its zone's or an enclosing zone's. Each label has a mask with one bit
// for each such name.
#include "src/session/frame_ranks.h"

#include "absl/strings/str_cat.h"

namespace perfkit::session {

void FrameRanks::SetEvents(const count::EventPlan& events) {
  for (Rank& rank : ranks_) {
    for (size_t i = 0; i < events.size() && rank.event == kNoEvent; ++i) {
      if (events.name(i) == rank.name) rank.event = i;
    }
  }
}

void FrameRanks::AddZone(uint32_t label, std::string_view name, std::string_view path, uint32_t parent) {
  if (ranks_.empty()) return;
  if (label >= of_label_.size()) of_label_.resize(label + 1);
  uint64_t mask = parent < of_label_.size() ? of_label_[parent] : 0;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i].event == kNoEvent && (ranks_[i].name == name || ranks_[i].name == path)) mask |= uint64_t{1} << i;
  }
  of_label_[label] |= mask;
}

std::vector<uint64_t> FrameRanks::Counts(std::span<const uint64_t> values, uint32_t missing) {
  std::vector<uint64_t> numbers(ranks_.size());
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const size_t event = ranks_[i].event;
    if (event >= values.size() || (missing >> event & 1) != 0) continue;
    numbers[i] = values[event];
    ranks_[i].is_used = ranks_[i].is_used || numbers[i] != 0;
  }
  return numbers;
}

void FrameRanks::AddTime(uint32_t label, uint64_t ns, std::span<uint64_t> numbers) {
  const uint64_t mask = label < of_label_.size() ? of_label_[label] : 0;
  if (mask == 0 || ns == 0) return;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if ((mask >> i & 1) == 0) continue;
    numbers[i] += ns;
    ranks_[i].is_used = true;
  }
}

std::string FrameRanks::Names(uint64_t mask) const {
  std::string text;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if ((mask >> i & 1) != 0) absl::StrAppend(&text, text.empty() ? "" : ", ", ranks_[i].name);
  }
  return text;
}

std::vector<std::string> FrameRanks::Unused() const {
  std::vector<std::string> names;
  for (const Rank& rank : ranks_) {
    if (!rank.is_used) names.push_back(rank.name);
  }
  return names;
}

}  // namespace perfkit::session
