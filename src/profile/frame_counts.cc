// A counter has one point at the beginning of each frame. Samples tell where in the code an event happened and, of an
// event without a counter, how often.
#include "src/profile/frame_counts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace perfkit::profile {
namespace {

// "page-faults" of "page-faults at cpu-clock", and of "page-faults (audio)".
std::string_view BaseOf(std::string_view name) {
  return name.substr(0, std::min({name.find(" at "), name.find(" ("), name.find(", ")}));
}

double SumOf(const Profile& profile, const ProfileZone& frame, size_t event) {
  double sum = 0;
  for (const ProfileSample& sample : SamplesIn(profile, frame)) {
    if (sample.thread == frame.thread && sample.event == event) sum += static_cast<double>(sample.weight);
  }
  return sum;
}

std::optional<double> PointOf(const ProfileCounter& counter, const ProfileZone& frame) {
  const auto point = std::lower_bound(counter.points.begin(), counter.points.end(), frame.from_ns,
                                      [](const auto& point, uint64_t time_ns) { return point.time_ns < time_ns; });
  if (point == counter.points.end() || point->time_ns != frame.from_ns) return std::nullopt;
  return point->value;
}

void FindStack(const Profile& profile, const ProfileZone& frame, size_t event, FrameCount& count) {
  std::map<uint32_t, double> stacks;
  for (const ProfileSample& sample : SamplesIn(profile, frame)) {
    if (sample.thread != frame.thread || sample.event != event) continue;
    const double at_stack = stacks[sample.stack] += static_cast<double>(sample.weight);
    if (at_stack <= count.at_stack) continue;
    count.at_stack = at_stack;
    count.stack = sample.stack;
    count.quality = sample.quality;
  }
}

bool IsSameProcess(const Profile& profile, uint32_t a, uint32_t b) {
  return profile.threads[a].pid == profile.threads[b].pid;
}

// Whether a counter is of these frames: another kind's are named by it.
bool IsOf(std::string_view counter, std::string_view kind) {
  const size_t suffix = counter.find(" (");
  if (suffix == counter.npos) return kind == "frame";
  return counter.substr(suffix) == " (" + std::string(kind) + ")";
}

}  // namespace

std::string_view FrameKind(std::string_view name) {
  const size_t digits = name.find_last_not_of("0123456789");
  if (digits == name.npos || digits + 1 == name.size() || name[digits] != ' ') return name;
  return name.substr(0, digits);
}

// Merged samples come first, and have the time 0.
std::span<const ProfileSample> SamplesIn(const Profile& profile, const ProfileZone& frame) {
  const auto is_before = [](const ProfileSample& sample, uint64_t time_ns) { return sample.time_ns < time_ns; };
  const auto& samples = profile.samples;
  const auto first = std::lower_bound(samples.begin(), samples.end(), std::max<uint64_t>(frame.from_ns, 1), is_before);
  return {first, std::lower_bound(first, samples.end(), frame.to_ns, is_before)};
}

size_t ClockOf(const Profile& profile, const ProfileZone& frame) {
  std::vector<size_t> clocks;
  for (size_t i = 0; i < profile.events.size(); ++i) {
    if (profile.events[i].unit == ProfileUnit::kNanoseconds && profile.events[i].name != kOffCpuEvent) {
      clocks.push_back(i);
    }
  }
  if (clocks.empty()) return 0;
  if (clocks.size() == 1) return clocks[0];
  std::vector<bool> sampled(profile.events.size());
  for (const ProfileSample& sample : SamplesIn(profile, frame)) {
    if (IsSameProcess(profile, sample.thread, frame.thread)) sampled[sample.event] = true;
  }
  const auto first = std::ranges::find_if(clocks, [&](size_t clock) { return sampled[clock]; });
  return first == clocks.end() ? clocks[0] : *first;
}

uint64_t IntervalOf(const Profile& profile, size_t event, uint32_t thread) {
  uint64_t weight = 0, samples = 0;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event != event || sample.thread != thread) continue;
    weight += sample.weight;
    samples += sample.samples;
  }
  if (samples != 0) return weight / samples;
  const Profile::Sum all = profile.Total(event);
  return all.samples == 0 ? 0 : all.weight / all.samples;
}

bool IsSampled(const Profile& profile, uint32_t thread, absl::FunctionRef<bool(uint16_t event)> is_event) {
  bool any_event = false, alone = true;
  for (size_t i = 0; i < profile.events.size(); ++i) any_event = any_event || is_event(static_cast<uint16_t>(i));
  if (!any_event) return false;
  for (uint32_t i = 0; i < profile.threads.size(); ++i) alone = alone && IsSameProcess(profile, i, thread);
  return alone || std::ranges::any_of(profile.samples, [&](const ProfileSample& sample) {
           return is_event(sample.event) && IsSameProcess(profile, sample.thread, thread);
         });
}

bool HasOffCpuTimes(const Profile& profile, uint32_t thread) {
  const size_t off_cpu = profile.EventIndex(kOffCpuEvent);
  if (off_cpu == profile.events.size()) return false;
  for (uint32_t i = 0; i < profile.threads.size(); ++i) {
    if (IsSameProcess(profile, i, thread) && profile.threads[i].off_ns != 0) return true;
  }
  return IsSampled(profile, thread, [off_cpu](uint16_t event) { return event == off_cpu; });
}

double FrequencyOf(const Profile& profile, const ProfileZone& frame) {
  const std::string_view kind = FrameKind(profile.strings[frame.name]);
  std::optional<double> cycles, on_cpu_ns;
  for (const ProfileCounter& counter : profile.counters) {
    const std::string_view name = profile.strings[counter.name];
    if (counter.thread != frame.thread || !IsOf(name, kind)) continue;
    // Cycles of user space alone ("cycles:u", "cycles, user only") say nothing about the frequency.
    const std::string_view event = name.substr(0, name.find(" ("));
    if (event == "cycles" || event == "cpu-cycles") cycles = PointOf(counter, frame);
    if (event == "task-clock") on_cpu_ns = PointOf(counter, frame);
  }
  return cycles && on_cpu_ns && *on_cpu_ns > 0 ? *cycles / *on_cpu_ns : 0;
}

FrameFaults FaultsOf(const SlowFrame& frame) {
  constexpr double kMinFaults = 16, kMinRatio = 2;  // of faults that are conspicuous
  const FrameCount* most = nullptr;
  double value = 0, usual = 0;
  for (const FrameCount& count : frame.counts) {
    const bool is_all = count.name.starts_with("page-faults");  // the last of the three by name; or "page-faults:u"
    const bool is_kind = count.name.starts_with("minor-faults") || count.name.starts_with("major-faults");
    if (count.value <= 0 || (!is_all && !is_kind)) continue;
    value = is_all ? count.value : value + count.value;
    usual = is_all ? count.usual : usual + count.usual;
    if (is_all || most == nullptr || count.value > most->value) most = &count;
    if (is_all) break;
  }
  if (most == nullptr) return {};
  const bool many = value - usual >= kMinFaults && value >= kMinRatio * usual;
  return {.extra = many ? value - usual : 0, .stack = most->stack, .quality = most->quality};
}

double UsualCounts::OfCounter(size_t counter) {
  const auto [usual, is_new] = counters_.try_emplace(counter);
  if (!is_new) return usual->second;
  std::vector<double> values;
  for (const uint32_t frame : compared_) {
    const std::optional<double> point = PointOf(profile_.counters[counter], profile_.zones[frame]);
    if (point) values.push_back(*point);
  }
  const size_t known = values.size();
  return usual->second = Median(std::move(values), known);
}

double UsualCounts::OfEvent(size_t event) {
  const auto [usual, is_new] = events_.try_emplace(event);
  if (!is_new) return usual->second;
  std::vector<double> values;
  for (const uint32_t frame : compared_) values.push_back(SumOf(profile_, profile_.zones[frame], event));
  return usual->second = Median(std::move(values), compared_.size());
}

std::vector<FrameCount> CountsOf(const Profile& profile, uint32_t frame, UsualCounts& usual) {
  const ProfileZone& zone = profile.zones[frame];
  std::map<std::string, FrameCount, std::less<>> counts;  // by name
  for (size_t i = 0; i < profile.counters.size(); ++i) {
    const ProfileCounter& counter = profile.counters[i];
    const std::string& name = profile.strings[counter.name];
    const bool is_ours = counter.thread == zone.thread && IsOf(name, FrameKind(profile.strings[zone.name]));
    const std::optional<double> value = PointOf(counter, zone);
    if (!is_ours || !value || counter.unit == ProfileUnit::kNanoseconds) continue;
    const std::string base(BaseOf(name));
    counts[base] = {.name = base, .value = *value, .usual = usual.OfCounter(i)};
  }
  for (size_t event = 0; event < profile.events.size(); ++event) {
    if (profile.events[event].unit == ProfileUnit::kNanoseconds) continue;
    if (!IsSampled(profile, zone.thread, [event](uint16_t one) { return one == event; })) continue;
    const std::string base(BaseOf(profile.events[event].name));
    const auto [count, is_new] = counts.try_emplace(base, FrameCount{.name = base});
    if (is_new) {
      count->second.value = SumOf(profile, zone, event);
      count->second.usual = usual.OfEvent(event);
    }
    if (count->second.stack == ProfileStack::kRoot) FindStack(profile, zone, event, count->second);
  }
  std::vector<FrameCount> all;
  for (auto& [name, count] : counts) all.push_back(std::move(count));
  return all;
}

}  // namespace perfkit::profile
