// Filters: a copy of a profile with fewer samples.
//
// Each condition is made a table first, so that a sample is judged in O(1), or in O(log zones): which threads, labels
// and stacks match (a stack does if its parent does), and when zones of the name were open on each thread.
#include <fnmatch.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/profile.h"

namespace perfkit {
namespace {

// A glob pattern of the shell's, as fnmatch(3) has it. An empty one matches all.
class Glob {
 public:
  explicit Glob(const std::string& pattern) : pattern_(pattern) {}
  bool is_set() const { return !pattern_.empty(); }
  bool Matches(const std::string& text) const {
    return pattern_.empty() || fnmatch(pattern_.c_str(), text.c_str(), 0) == 0;
  }

 private:
  const std::string& pattern_;
};

// Times from begin (included) to end (excluded). After Join they are apart from each other and in order, so that one
// binary search answers.
class Intervals {
 public:
  void Add(uint64_t from_ns, uint64_t to_ns) { intervals_.emplace_back(from_ns, to_ns); }

  // Makes those that overlap or touch one. To be called after the last Add.
  void Join() {
    std::sort(intervals_.begin(), intervals_.end());
    std::vector<std::pair<uint64_t, uint64_t>> joined;
    for (const auto& interval : intervals_) {
      if (joined.empty() || interval.first > joined.back().second) joined.push_back(interval);
      joined.back().second = std::max(joined.back().second, interval.second);
    }
    intervals_ = std::move(joined);
  }

  bool Holds(uint64_t time_ns) const {
    const auto after = After(time_ns);
    return after != intervals_.begin() && time_ns < std::prev(after)->second;
  }
  bool HoldsAll(uint64_t from_ns, uint64_t to_ns) const {
    const auto after = After(from_ns);
    return after != intervals_.begin() && to_ns <= std::prev(after)->second;
  }

 private:
  // The first interval that begins after `time_ns`: the one before it may hold that time.
  std::vector<std::pair<uint64_t, uint64_t>>::const_iterator After(uint64_t time_ns) const {
    return std::upper_bound(intervals_.begin(), intervals_.end(), std::pair(time_ns, UINT64_MAX));
  }

  std::vector<std::pair<uint64_t, uint64_t>> intervals_;
};

class Filtering {
 public:
  Filtering(const Profile& profile, const Profile::Filter& filter) : profile_(profile), filter_(filter) {
    ChooseThreads();
    ChooseLabels();
    ChooseStacks();
    FindZones();
  }

  bool ByTime() const { return filter_.from_ns != 0 || filter_.to_ns != UINT64_MAX || !filter_.zone.empty(); }
  // Selects all of some threads, nothing of the others.
  bool ByThreadsAlone() const {
    return !ByTime() && filter_.function.empty() && filter_.label.empty() && filter_.task.empty();
  }

  bool Keeps(const ProfileSample& sample) const {
    if (!KeepsAtAnyTime(sample) || IsUnknown(sample)) return false;
    return !ByTime() || (InTime(sample.time_ns) && InZone(sample.thread, sample.time_ns));
  }
  // A merged sample has no time: a filter by time can't know which part of it lies inside. Returns true if the sample
  // is left out for this reason alone.
  bool LeavesOutAsMerged(const ProfileSample& sample) const { return IsUnknown(sample) && KeepsAtAnyTime(sample); }

  // Zones that were open in the time that is kept; of zones by name, these and what lies in them.
  bool Keeps(const ProfileZone& zone) const {
    if (!threads_[zone.thread] || !Overlaps(zone.from_ns, zone.to_ns)) return false;
    return filter_.zone.empty() || zones_[zone.thread].HoldsAll(zone.from_ns, zone.to_ns);
  }

  bool Keeps(const ProfileTaskPart& part) const {
    if (!threads_[part.thread] || !Overlaps(part.from_ns, part.to_ns)) return false;
    return tasks_[part.task] && (filter_.zone.empty() || zones_[part.thread].HoldsAll(part.from_ns, part.to_ns));
  }

  bool KeepsCounter(const ProfileCounter& counter) const {
    return counter.thread == ProfileCounter::kWholeProcess || threads_[counter.thread];
  }
  bool Keeps(const ProfileCounter& counter, const ProfileCounter::Point& point) const {
    return InTime(point.time_ns) && InZone(counter.thread, point.time_ns);
  }

  bool KeepsThread(size_t thread) const { return threads_[thread]; }

 private:
  // An interval that ends where the filter begins does not overlap it, unless it is empty: the frame before the chosen
  // one ends there.
  bool Overlaps(uint64_t from_ns, uint64_t to_ns) const {
    const bool has_ended = to_ns < filter_.from_ns || (to_ns == filter_.from_ns && from_ns < to_ns);
    return from_ns < filter_.to_ns && !has_ended;
  }
  bool IsUnknown(const ProfileSample& sample) const { return ByTime() && sample.merged(); }
  bool KeepsAtAnyTime(const ProfileSample& sample) const {
    if (!threads_[sample.thread] || !labels_[sample.label] || !tasks_[sample.task]) return false;
    return filter_.function.empty() || (sample.stack != ProfileStack::kRoot && stacks_[sample.stack]);
  }

  void ChooseThreads() {
    threads_.assign(profile_.threads.size(), filter_.threads.empty());
    for (const uint32_t thread : filter_.threads) {
      if (thread < threads_.size()) threads_[thread] = true;
    }
    const Glob name(filter_.thread_name);
    for (size_t i = 0; i < threads_.size(); ++i) {
      threads_[i] = threads_[i] && name.Matches(profile_.strings[profile_.threads[i].name]);
    }
  }

  void ChooseLabels() {
    labels_ = Matching(Glob(filter_.label));
    tasks_ = Matching(Glob(filter_.task));
  }
  // By string: those that match. "" matches only if nothing is asked for.
  std::vector<bool> Matching(const Glob& glob) const {
    std::vector<bool> matches(profile_.strings.size(), !glob.is_set());
    for (size_t i = 1; glob.is_set() && i < matches.size(); ++i) matches[i] = glob.Matches(profile_.strings[i]);
    return matches;
  }

  void ChooseStacks() {
    const Glob function(filter_.function);
    if (!function.is_set()) return;
    std::vector<bool> functions(profile_.strings.size()), locations(profile_.locations.size());
    for (size_t i = 1; i < functions.size(); ++i) functions[i] = function.Matches(profile_.strings[i]);
    for (uint32_t i = 0; i < locations.size(); ++i) {
      // Code without a name matches by what reports print for it, "[libfoo.so]+0x1234".
      bool unnamed = profile_.CallsAt(i).empty();
      for (const ProfileCall& call : profile_.CallsAt(i)) {
        if (call.function == 0) unnamed = true;
        if (functions[call.function]) locations[i] = true;
      }
      if (unnamed && function.Matches(profile_.UnnamedCode(i))) locations[i] = true;
    }
    for (const ProfileStack& stack : profile_.stacks) {
      const bool parent = stack.parent != ProfileStack::kRoot && stacks_[stack.parent];
      stacks_.push_back(parent || locations[stack.location]);
    }
  }

  void FindZones() {
    if (filter_.zone.empty()) return;
    const Glob name(filter_.zone);
    zones_.resize(profile_.threads.size());
    for (const ProfileZone& zone : profile_.zones) {
      if (!threads_[zone.thread] || !name.Matches(profile_.strings[zone.name])) continue;
      zones_[zone.thread].Add(zone.from_ns, zone.to_ns);
      any_zone_.Add(zone.from_ns, zone.to_ns);
    }
    for (Intervals& zones : zones_) zones.Join();
    any_zone_.Join();
  }

  bool InTime(uint64_t time_ns) const { return time_ns >= filter_.from_ns && time_ns < filter_.to_ns; }
  bool InZone(uint32_t thread, uint64_t time_ns) const {
    if (filter_.zone.empty()) return true;
    return thread == ProfileCounter::kWholeProcess ? any_zone_.Holds(time_ns) : zones_[thread].Holds(time_ns);
  }

  const Profile& profile_;
  const Profile::Filter& filter_;
  std::vector<bool> threads_;         // by thread
  std::vector<bool> labels_, tasks_;  // by string
  std::vector<bool> stacks_;          // by stack; empty: all
  std::vector<Intervals> zones_;
  Intervals any_zone_;
};

}  // namespace

Profile Profile::Filtered(const Filter& filter) const {
  const Filtering filtering(*this, filter);
  Profile result = *this;
  uint64_t merged = 0;
  std::vector<std::vector<uint64_t>> removed_ns(threads.size());  // by thread, in order
  std::erase_if(result.samples, [&](const ProfileSample& sample) {
    if (filtering.LeavesOutAsMerged(sample)) merged += sample.samples;
    const bool is_removed = !filtering.Keeps(sample);
    if (is_removed && !sample.merged()) removed_ns[sample.thread].push_back(sample.time_ns);
    return is_removed;
  });
  std::erase_if(result.zones, [&](const ProfileZone& zone) { return !filtering.Keeps(zone); });
  for (ProfileZone& zone : result.zones) {
    if (!zone.is_frame) continue;
    const std::vector<uint64_t>& removed = removed_ns[zone.thread];
    const auto first = std::lower_bound(removed.begin(), removed.end(), zone.from_ns);
    const bool lacks_samples = first != removed.end() && *first < zone.to_ns;
    if (lacks_samples || zone.from_ns < filter.from_ns || zone.to_ns > filter.to_ns) zone.is_whole = false;
  }
  std::erase_if(result.task_parts, [&](const ProfileTaskPart& part) { return !filtering.Keeps(part); });
  std::erase_if(result.counters, [&](const ProfileCounter& counter) { return !filtering.KeepsCounter(counter); });
  for (ProfileCounter& counter : result.counters) {
    std::erase_if(counter.points, [&](const ProfileCounter::Point& point) { return !filtering.Keeps(counter, point); });
  }
  // Threads stay, because samples, zones and counters have their indexes; what they counted goes. A filter by time,
  // label, task or function can't know which part of that it keeps, and two parts that are merged would count it twice.
  for (size_t i = 0; i < result.threads.size(); ++i) {
    if (filtering.KeepsThread(i) && filtering.ByThreadsAlone()) continue;
    ProfileThread& left_out = result.threads[i];
    left_out.on_ns = left_out.off_ns = left_out.ended = 0;
  }
  result.from_ns = std::max(from_ns, filter.from_ns);
  result.to_ns = std::max(result.from_ns, std::min(to_ns, filter.to_ns));
  if (merged != 0) {
    result.accounting.notes.push_back(
        absl::StrFormat("%d samples were merged without their times: a filter by time leaves them out", merged));
  }
  return result;
}

}  // namespace perfkit
