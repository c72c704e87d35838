// Merging: the tables of another profile are entered into one's own, from those that others point into (strings) to
// those that point (samples). Each entry is looked up by its bytes, with its indexes translated first.
#include "src/profile/merge_tables.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "src/profile/accounting_sums.h"
#include "src/profile/unique_strings.h"

namespace perfkit {
namespace {

// A key as bytes: its parts one after the other, each of a fixed size, so that different keys have different bytes.
// Structs themselves are no keys: their padding is not defined.
class KeyBytes {
 public:
  template <class Number>
  KeyBytes& operator<<(Number number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof(number));
    return *this;
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// A table's entries by their keys. The first of equal ones counts.
class KeyIndex {
 public:
  void Enter(std::string key, size_t index) { index_.try_emplace(std::move(key), static_cast<uint32_t>(index)); }
  // One map holds the entries of the table that grows; nothing is removed, so an index stays right.
  // The index of the entry with this key; `add` makes it if there is none, as the last one of a table of `size`.
  template <class Add>
  uint32_t Find(std::string key, size_t size, Add&& add) {
    const auto [entry, is_new] = index_.try_emplace(std::move(key), static_cast<uint32_t>(size));
    if (is_new) add();
    return entry->second;
  }

 private:
  std::unordered_map<std::string, uint32_t> index_;
};

std::string ModuleKey(const ProfileModule& module) { return (KeyBytes() << module.path << module.build_id).Take(); }

// Sums of ended threads have a name in common, all others a number.
std::string ThreadKey(const ProfileThread& thread) {
  if (thread.is_sum()) return (KeyBytes() << thread.pid << ProfileThread::kFirstSum << thread.name).Take();
  return (KeyBytes() << thread.pid << thread.tid << thread.first_ns).Take();
}

// Code that was made at run time may have had another name at the same address: names belong to the key.
std::string LocationKey(const ProfileLocation& location, std::span<const ProfileCall> calls) {
  KeyBytes key;
  key << location.module << location.kernel << location.address;
  for (const ProfileCall& call : calls) key << call.function << call.file << call.line << call.inlined;
  return key.Take();
}

std::string StackKey(const ProfileStack& stack) {
  return (KeyBytes() << stack.parent << stack.location << stack.is_guess << stack.is_stitched).Take();
}

std::string WaitKey(const ProfileWait& wait) {
  KeyBytes key;
  key << wait.preempted << wait.blocked_in_syscall << wait.syscall << wait.detail << wait.waker << wait.holder
      << wait.holder_stack << wait.holder_quality << wait.holder_since_ns << wait.examined_ns << wait.lock_kind
      << wait.lock << wait.preempter.tid << wait.preempter.command << wait.preempter.is_own << wait.preempter.others
      << wait.throttled_ns;
  for (const uint64_t argument : wait.arguments) key << argument;
  return key.Take();
}

// What else is known of a zone depends on what its profile has kept.
std::string ZoneKey(const ProfileZone& zone) {
  return (KeyBytes() << zone.from_ns << zone.to_ns << zone.thread << zone.name << zone.is_frame).Take();
}

std::string TaskPartKey(const ProfileTaskPart& part) {
  return (KeyBytes() << part.from_ns << part.to_ns << part.number << part.thread << part.name << part.task).Take();
}

// Entries of a table that may be in both profiles, if these are parts of one.
class Shared {
 public:
  void Enter(std::string key, size_t index) { indexes_[std::move(key)].push_back(index); }
  // Returns the index of an equal entry that no other one was taken for.
  std::optional<size_t> Take(const std::string& key) {
    const auto found = indexes_.find(key);
    if (found == indexes_.end() || found->second.empty()) return std::nullopt;
    const size_t index = found->second.back();
    found->second.pop_back();
    return index;
  }

 private:
  std::unordered_map<std::string, std::vector<size_t>> indexes_;
};

// `from` is the same zone in another profile, with indexes of this one's strings.
void AddKnown(ProfileZone& to, const ProfileZone& from) {
  for (uint32_t ProfileZone::*const text :
       {&ProfileZone::cause, &ProfileZone::reason, &ProfileZone::state, &ProfileZone::worst_by}) {
    if (to.*text == 0) to.*text = from.*text;
  }
  to.is_whole = to.is_whole || from.is_whole;
  to.is_reference = to.is_reference || from.is_reference;
}

void AddAccounting(ProfileAccounting& to, const ProfileAccounting& from) {
  to.whole_from_ns = std::max(to.whole_from_ns, from.whole_from_ns);
  to.times_forgotten += from.times_forgotten;
  to.stacks_forgotten += from.stacks_forgotten;
  to.dumps_dropped += from.dumps_dropped;
  to.addresses_forgotten += from.addresses_forgotten;
  to.waits_forgotten += from.waits_forgotten;
  to.zones_forgotten += from.zones_forgotten;
  to.frames_dropped += from.frames_dropped;
  to.zone_records_lost += from.zone_records_lost;
  to.task_parts_forgotten += from.task_parts_forgotten;
  to.task_records_lost += from.task_records_lost;
  to.switches_read += from.switches_read;
  to.switches_lost += from.switches_lost;
  to.side_band_lost += from.side_band_lost;
  to.unattributed += from.unattributed;
  to.own_cpu_ns += from.own_cpu_ns;
  to.naming_cpu_ns += from.naming_cpu_ns;
  to.kernel_cpu_ns += from.kernel_cpu_ns;
  for (const std::string& note : from.notes) {
    if (std::find(to.notes.begin(), to.notes.end(), note) == to.notes.end()) to.notes.push_back(note);
  }
}

// Adds each name of a list to another list, unless it is there.
void AddNames(std::string& names, const std::string& added) {
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(added, ", ", absl::SkipEmpty()))) {
    if ((", " + names + ", ").find(", " + name + ", ") != std::string::npos) continue;
    names += (names.empty() ? "" : ", ") + name;
  }
}

// Adds `from` to `to`. Each table of `from` has a translation: its indexes in `to`.
class Merging {
 public:
  Merging(Profile& to, const Profile& from) : to_(to), from_(from) {}

  void Merge() {
    profile::MakeStringsUnique(to_);
    MergeStrings();
    MergeEvents();
    MergeThreads();
    MergeLocations();
    MergeStacks();
    MergeWaits();
    MergeMemory();
    MergeSamples();
    MergeZones();
    MergeTaskParts();
    for (const ProfileCounter& counter : from_.counters) MergeCounter(counter);
    AddAccounting(to_.accounting, from_.accounting);
  }

 private:
  void MergeStrings() {
    std::unordered_map<std::string, uint32_t> index;
    // String 0 is "" in both (Profile::Check), so 0 stays 0: fields in which 0 means "none" need no case of their own.
    for (size_t i = 0; i < to_.strings.size(); ++i) index.try_emplace(to_.strings[i], static_cast<uint32_t>(i));
    for (const std::string& text : from_.strings) {
      const auto [entry, is_new] = index.try_emplace(text, static_cast<uint32_t>(to_.strings.size()));
      if (is_new) to_.strings.push_back(text);
      strings_.push_back(entry->second);
    }
  }

  void MergeEvents() {
    for (const ProfileEvent& event : from_.events) {
      size_t i = 0;
      while (i < to_.events.size() && (to_.events[i].name != event.name || to_.events[i].unit != event.unit)) ++i;
      events_.push_back(static_cast<uint16_t>(i));
      if (i == to_.events.size()) {
        to_.events.push_back(event);
      } else {
        to_.events[i].user_only = to_.events[i].user_only || event.user_only;
        profile::Add(to_.events[i].accounting, event.accounting);
      }
    }
  }

  void MergeThreads() {
    KeyIndex index;
    for (size_t i = 0; i < to_.threads.size(); ++i) index.Enter(ThreadKey(to_.threads[i]), i);
    for (ProfileThread thread : from_.threads) {
      thread.name = strings_[thread.name];
      bool is_new = false;
      threads_.push_back(index.Find(ThreadKey(thread), to_.threads.size(), [&] {
        to_.threads.push_back(thread);
        // Both profiles may have given the number to sums of other names.
        if (thread.is_sum()) to_.threads.back().tid = FreeSum();
        is_new = true;
      }));
      if (is_new) continue;
      ProfileThread& same = to_.threads[threads_.back()];
      if (thread.last_ns > same.last_ns) same.name = thread.name;
      if (thread.is_sum()) same.first_ns = std::min(same.first_ns, thread.first_ns);
      same.ended += thread.ended;
      same.last_ns = std::max(same.last_ns, thread.last_ns);
      same.on_ns += thread.on_ns;
      same.off_ns += thread.off_ns;
    }
  }

  // A number that no sum has yet.
  uint32_t FreeSum() const {
    uint32_t tid = ProfileThread::kFirstSum;
    for (const ProfileThread& thread : to_.threads) tid = std::max(tid, thread.tid + 1);
    return tid;
  }

  void MergeLocations() {
    KeyIndex modules;
    std::vector<uint32_t> module_of;
    for (size_t i = 0; i < to_.modules.size(); ++i) modules.Enter(ModuleKey(to_.modules[i]), i);
    for (ProfileModule module : from_.modules) {
      module = {.path = strings_[module.path], .build_id = strings_[module.build_id]};
      module_of.push_back(modules.Find(ModuleKey(module), to_.modules.size(), [&] { to_.modules.push_back(module); }));
    }
    KeyIndex locations;
    for (uint32_t i = 0; i < to_.locations.size(); ++i) {
      locations.Enter(LocationKey(to_.locations[i], to_.CallsAt(i)), i);
    }
    for (uint32_t i = 0; i < from_.locations.size(); ++i) {
      ProfileLocation location = from_.locations[i];
      if (location.module != ProfileLocation::kNoModule) location.module = module_of[location.module];
      const std::span<const ProfileCall> from_calls = from_.CallsAt(i);
      std::vector<ProfileCall> calls(from_calls.begin(), from_calls.end());
      for (ProfileCall& call : calls) call.function = strings_[call.function], call.file = strings_[call.file];
      locations_.push_back(locations.Find(LocationKey(location, calls), to_.locations.size(), [&] {
        location.first_call = static_cast<uint32_t>(to_.calls.size());
        to_.calls.insert(to_.calls.end(), calls.begin(), calls.end());
        to_.locations.push_back(location);
      }));
    }
  }

  void MergeStacks() {
    KeyIndex index;
    for (size_t i = 0; i < to_.stacks.size(); ++i) index.Enter(StackKey(to_.stacks[i]), i);
    for (ProfileStack stack : from_.stacks) {
      if (stack.parent != ProfileStack::kRoot) stack.parent = stacks_[stack.parent];
      stack.location = locations_[stack.location];
      stacks_.push_back(index.Find(StackKey(stack), to_.stacks.size(), [&] { to_.stacks.push_back(stack); }));
    }
  }

  void MergeWaits() {
    KeyIndex index;
    for (size_t i = 0; i < to_.waits.size(); ++i) index.Enter(WaitKey(to_.waits[i]), i);
    for (ProfileWait wait : from_.waits) {
      wait.detail = strings_[wait.detail];
      wait.waker = strings_[wait.waker];
      wait.preempter.command = strings_[wait.preempter.command];
      if (wait.holder != ProfileWait::kNoHolder) wait.holder = threads_[wait.holder];
      if (wait.holder_stack != ProfileStack::kRoot) wait.holder_stack = stacks_[wait.holder_stack];
      waits_.push_back(index.Find(WaitKey(wait), to_.waits.size(), [&] { to_.waits.push_back(wait); }));
    }
  }

  void MergeMemory() {
    KeyIndex index;
    const auto key = [](const ProfileMemory& one) { return (KeyBytes() << one.from << one.to << one.name).Take(); };
    for (size_t i = 0; i < to_.memory.size(); ++i) index.Enter(key(to_.memory[i]), i);
    for (ProfileMemory memory : from_.memory) {
      memory.name = strings_[memory.name];
      memory_.push_back(index.Find(key(memory), to_.memory.size(), [&] { to_.memory.push_back(memory); }));
    }
  }

  void MergeSamples() {
    const auto middle = static_cast<ptrdiff_t>(to_.samples.size());
    for (ProfileSample sample : from_.samples) {
      sample.thread = threads_[sample.thread];
      if (sample.stack != ProfileStack::kRoot) sample.stack = stacks_[sample.stack];
      sample.label = strings_[sample.label];
      sample.task = strings_[sample.task];
      if (sample.wait != ProfileSample::kNoWait) sample.wait = waits_[sample.wait];
      if (sample.memory != ProfileSample::kNoMemory) sample.memory = memory_[sample.memory];
      sample.event = events_[sample.event];
      to_.samples.push_back(sample);
    }
    // Both halves are in order of time, as Check requires; so is the whole then.
    std::inplace_merge(to_.samples.begin(), to_.samples.begin() + middle, to_.samples.end(),
                       [](const ProfileSample& a, const ProfileSample& b) { return a.time_ns < b.time_ns; });
  }

  // A zone that both have is one.
  void MergeZones() {
    Shared zones;
    for (size_t i = 0; i < to_.zones.size(); ++i) zones.Enter(ZoneKey(to_.zones[i]), i);
    for (ProfileZone zone : from_.zones) {
      zone.thread = threads_[zone.thread];
      zone.name = strings_[zone.name];
      zone.cause = strings_[zone.cause];
      zone.reason = strings_[zone.reason];
      zone.state = strings_[zone.state];
      zone.worst_by = strings_[zone.worst_by];
      if (const std::optional<size_t> same = zones.Take(ZoneKey(zone))) {
        AddKnown(to_.zones[*same], zone);
      } else {
        to_.zones.push_back(zone);
      }
    }
  }

  // A part that both have is one.
  void MergeTaskParts() {
    Shared parts;
    for (size_t i = 0; i < to_.task_parts.size(); ++i) parts.Enter(TaskPartKey(to_.task_parts[i]), i);
    const auto middle = static_cast<ptrdiff_t>(to_.task_parts.size());
    for (ProfileTaskPart part : from_.task_parts) {
      part.thread = threads_[part.thread];
      part.name = strings_[part.name];
      part.task = strings_[part.task];
      if (!parts.Take(TaskPartKey(part))) to_.task_parts.push_back(part);
    }
    std::inplace_merge(to_.task_parts.begin(), to_.task_parts.begin() + middle, to_.task_parts.end(),
                       [](const ProfileTaskPart& a, const ProfileTaskPart& b) { return a.from_ns < b.from_ns; });
  }

  // The points of a counter that both have are one series; the same point twice is one.
  void MergeCounter(ProfileCounter counter) {
    counter.name = strings_[counter.name];
    if (counter.thread != ProfileCounter::kWholeProcess) counter.thread = threads_[counter.thread];
    const auto same = std::find_if(to_.counters.begin(), to_.counters.end(), [&](const ProfileCounter& other) {
      return other.name == counter.name && other.unit == counter.unit && other.thread == counter.thread;
    });
    if (same == to_.counters.end()) {
      to_.counters.push_back(std::move(counter));
      return;
    }
    const auto key = [](const ProfileCounter::Point& point) { return std::pair(point.time_ns, point.value); };
    std::vector<ProfileCounter::Point>& points = same->points;
    points.insert(points.end(), counter.points.begin(), counter.points.end());
    std::sort(points.begin(), points.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
    points.erase(
        std::unique(points.begin(), points.end(), [&](const auto& a, const auto& b) { return key(a) == key(b); }),
        points.end());
  }

  Profile& to_;
  const Profile& from_;
  std::vector<uint32_t> strings_, threads_, locations_, stacks_, waits_, memory_;
  std::vector<uint16_t> events_;
};

}  // namespace

void MergeTables(Profile& to, const Profile& from) {
  Merging(to, from).Merge();
  AddNames(to.program, from.program);
}

}  // namespace perfkit
