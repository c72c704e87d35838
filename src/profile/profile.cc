// Sums and names of a profile, and the check that its tables fit together. A profile is a value that may be changed by
// hand or read from a file, so no reader can rely on its indexes. Check looks at each index of each table once, and
// names the first entry that is wrong; writers and reports call it first.
#include "perfkit/profile.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "src/profile/base_name.h"
#include "src/profile/merge_tables.h"
#include "src/profile/text_table.h"

namespace perfkit {
namespace {

absl::Status Wrong(std::string_view table, size_t index, std::string_view what) {
  return absl::Status(
      absl::StatusCode::kInvalidArgument,
      absl::StrFormat("Profile::%s[%d]: %s. Remedy: build profiles with ProfileBuilder.", table, index, what));
}

// Checks the tables of one profile, each against those that it points into.
class Checker {
 public:
  explicit Checker(const Profile& profile) : profile_(profile) {}

  absl::Status Strings() const {
    if (profile_.strings.empty() || !profile_.strings[0].empty()) return Wrong("strings", 0, "is not \"\"");
    return absl::OkStatus();
  }

  absl::Status Events() const {
    constexpr size_t kMax = size_t{1} << 16;  // ProfileSample::event
    if (profile_.events.size() > kMax) return Wrong("events", kMax, "has a number that no sample can have");
    for (size_t i = 0; i < profile_.events.size(); ++i) {
      if (profile_.events[i].unit > ProfileUnit::kBytes) return Wrong("events", i, "unit is not one of ProfileUnit");
    }
    return absl::OkStatus();
  }

  absl::Status Threads() const {
    for (size_t i = 0; i < profile_.threads.size(); ++i) {
      if (!IsString(profile_.threads[i].name)) return Wrong("threads", i, "name is no string");
    }
    return absl::OkStatus();
  }

  absl::Status Code() const {
    for (size_t i = 0; i < profile_.modules.size(); ++i) {
      const ProfileModule& module = profile_.modules[i];
      if (!IsString(module.path) || !IsString(module.build_id)) return Wrong("modules", i, "a name is no string");
    }
    for (size_t i = 0; i < profile_.calls.size(); ++i) {
      const ProfileCall& call = profile_.calls[i];
      if (!IsString(call.function) || !IsString(call.file)) return Wrong("calls", i, "a name is no string");
    }
    for (size_t i = 0; i < profile_.locations.size(); ++i) {
      const ProfileLocation& location = profile_.locations[i];
      const bool module = location.module == ProfileLocation::kNoModule || location.module < profile_.modules.size();
      if (!module) return Wrong("locations", i, "there is no such module");
      if (uint64_t{location.first_call} + location.calls > profile_.calls.size()) {
        return Wrong("locations", i, "there are no such calls");
      }
    }
    return absl::OkStatus();
  }

  absl::Status Stacks() const {
    for (size_t i = 0; i < profile_.stacks.size(); ++i) {
      const ProfileStack& stack = profile_.stacks[i];
      if (stack.location >= profile_.locations.size()) return Wrong("stacks", i, "there is no such location");
      if (stack.parent != ProfileStack::kRoot && stack.parent >= i) return Wrong("stacks", i, "parent comes after it");
    }
    return absl::OkStatus();
  }

  absl::Status Samples() const {
    uint64_t last_ns = 0;
    std::vector<uint64_t> totals(profile_.events.size());
    const size_t off_cpu = profile_.EventIndex(kOffCpuEvent);
    for (size_t i = 0; i < profile_.samples.size(); ++i) {
      const ProfileSample& sample = profile_.samples[i];
      if (sample.thread >= profile_.threads.size()) return Wrong("samples", i, "there is no such thread");
      if (sample.event >= profile_.events.size()) return Wrong("samples", i, "there is no such event");
      const bool has_stack = sample.stack != ProfileStack::kRoot;
      if (has_stack && sample.stack >= profile_.stacks.size()) return Wrong("samples", i, "there is no such stack");
      if (has_stack == (sample.quality == StackQuality::kNone)) return Wrong("samples", i, "stack and quality differ");
      const bool has_wait = sample.wait != ProfileSample::kNoWait;
      if (has_wait && sample.wait >= profile_.waits.size()) return Wrong("samples", i, "there is no such wait");
      const bool has_memory = sample.memory != ProfileSample::kNoMemory;
      if (has_memory && sample.memory >= profile_.memory.size()) return Wrong("samples", i, "there is no such memory");
      if (sample.quality > StackQuality::kNone) return Wrong("samples", i, "quality is not one of StackQuality");
      if (!IsString(sample.label)) return Wrong("samples", i, "label is no string");
      if (!IsString(sample.task)) return Wrong("samples", i, "task is no string");
      if (sample.time_ns < last_ns) return Wrong("samples", i, "is earlier than the one before it");
      last_ns = sample.time_ns;
      uint64_t& total = totals[sample.event];
      if (sample.weight > UINT64_MAX - total) return Wrong("samples", i, "the event's weights add up to 2^64 or more");
      total += sample.weight;
      if (sample.event == off_cpu && sample.weight > UINT64_MAX - sample.time_ns) {
        return Wrong("samples", i, "ends at 2^64 ns or later");
      }
    }
    return absl::OkStatus();
  }

  absl::Status Timeline() const {
    for (size_t i = 0; i < profile_.waits.size(); ++i) {
      const ProfileWait& wait = profile_.waits[i];
      const bool has_strings = IsString(wait.detail) && IsString(wait.waker) && IsString(wait.preempter.command);
      if (!has_strings) return Wrong("waits", i, "a text is no string");
      const bool has_holder = wait.holder != ProfileWait::kNoHolder,
                 has_stack = wait.holder_stack != ProfileStack::kRoot;
      if (has_holder && wait.holder >= profile_.threads.size()) return Wrong("waits", i, "there is no such holder");
      if (has_stack && wait.holder_stack >= profile_.stacks.size()) return Wrong("waits", i, "there is no such stack");
      const bool has_quality = wait.holder_quality <= StackQuality::kNone;
      if (!has_quality) return Wrong("waits", i, "holder_quality is not one of StackQuality");
      if (wait.lock_kind > ProfileLock::kSemaphore) return Wrong("waits", i, "lock_kind is not one of ProfileLock");
    }
    for (size_t i = 0; i < profile_.memory.size(); ++i) {
      if (!IsString(profile_.memory[i].name)) return Wrong("memory", i, "name is no string");
      if (profile_.memory[i].to < profile_.memory[i].from) return Wrong("memory", i, "ends before it begins");
    }
    for (size_t i = 0; i < profile_.zones.size(); ++i) {
      const ProfileZone& zone = profile_.zones[i];
      if (zone.thread >= profile_.threads.size()) return Wrong("zones", i, "there is no such thread");
      const bool has_strings = IsString(zone.name) && IsString(zone.cause) && IsString(zone.reason) &&
                               IsString(zone.state) && IsString(zone.worst_by);
      if (!has_strings) return Wrong("zones", i, "a name is no string");
      if (zone.to_ns < zone.from_ns) return Wrong("zones", i, "ends before it begins");
    }
    for (size_t i = 0; i < profile_.task_parts.size(); ++i) {
      const ProfileTaskPart& part = profile_.task_parts[i];
      if (part.thread >= profile_.threads.size()) return Wrong("task_parts", i, "there is no such thread");
      if (!IsString(part.name) || !IsString(part.task)) return Wrong("task_parts", i, "a name is no string");
      if (part.to_ns < part.from_ns) return Wrong("task_parts", i, "ends before it begins");
    }
    for (size_t i = 0; i < profile_.counters.size(); ++i) {
      const ProfileCounter& counter = profile_.counters[i];
      const bool thread = counter.thread == ProfileCounter::kWholeProcess || counter.thread < profile_.threads.size();
      if (!thread) return Wrong("counters", i, "there is no such thread");
      if (!IsString(counter.name)) return Wrong("counters", i, "name is no string");
      if (counter.unit > ProfileUnit::kBytes) return Wrong("counters", i, "unit is not one of ProfileUnit");
      for (const ProfileCounter::Point& point : counter.points) {
        if (!std::isfinite(point.value)) return Wrong("counters", i, "a value is infinite or not a number");
      }
      for (size_t k = 1; k < counter.points.size(); ++k) {
        if (counter.points[k].time_ns < counter.points[k - 1].time_ns)
          return Wrong("counters", i, "times run backwards");
      }
    }
    return absl::OkStatus();
  }

 private:
  bool IsString(uint32_t index) const { return index < profile_.strings.size(); }

  const Profile& profile_;
};

}  // namespace

std::string_view ProfileUnitName(ProfileUnit unit) {
  constexpr std::string_view kNames[] = {"count", "nanoseconds", "bytes"};
  return kNames[static_cast<size_t>(unit)];
}

std::string_view StackQualityName(StackQuality quality) {
  constexpr std::string_view kNames[] = {"whole", "part", "leaf only", "last known", "none"};
  return kNames[static_cast<size_t>(quality)];
}

Profile::Sum Profile::Total(size_t event) const {
  Sum sum;
  for (const ProfileSample& sample : samples) {
    if (sample.event == event) sum.weight += sample.weight, sum.samples += sample.samples;
  }
  return sum;
}

size_t Profile::EventIndex(std::string_view name) const {
  size_t index = 0;
  while (index < events.size() && events[index].name != name) ++index;
  return index;
}

uint64_t Profile::ThreadCount() const {
  uint64_t count = 0;
  for (const ProfileThread& thread : threads) count += thread.is_sum() ? thread.ended : 1;
  return count;
}

std::string Profile::ThreadName(uint32_t thread) const {
  const ProfileThread& at = threads[thread];
  if (!at.is_sum()) return strings[at.name];
  const std::string space = at.name != 0 ? " " : "";
  if (at.ended == 0) return strings[at.name] + space + "(ended threads)";
  return absl::StrFormat("%s%s(%s ended thread%s)", strings[at.name], space, profile::CountText(at.ended),
                         at.ended == 1 ? "" : "s");
}

std::span<const ProfileCall> Profile::CallsAt(uint32_t location) const {
  const ProfileLocation& at = locations[location];
  return std::span(calls).subspan(at.first_call, at.calls);
}

std::string Profile::CallName(uint32_t location, const ProfileCall& call) const {
  if (call.function != 0) return strings[call.function];
  return UnnamedCode(location);
}

std::string Profile::UnnamedCode(uint32_t location) const {
  const ProfileLocation& at = locations[location];
  if (at.module == ProfileLocation::kNoModule) return absl::StrFormat("[unknown]+0x%x", at.address);
  return absl::StrFormat("[%s]+0x%x", profile::BaseName(strings[modules[at.module].path]), at.address);
}

absl::Status Profile::Check() const {
  const Checker checker(*this);
  for (absl::Status status : {checker.Strings(), checker.Events(), checker.Threads(), checker.Code(), checker.Stacks(),
                              checker.Samples(), checker.Timeline()}) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void Profile::Merge(const Profile& other) {
  if (&other == this) return Merge(Profile(other));
  const bool had_times = to_ns != 0;
  MergeTables(*this, other);
  if (other.to_ns != 0) {
    from_ns = had_times ? std::min(from_ns, other.from_ns) : other.from_ns;
    to_ns = std::max(to_ns, other.to_ns);
  }
  if (realtime_offset_ns == 0) realtime_offset_ns = other.realtime_offset_ns;
}

}  // namespace perfkit
