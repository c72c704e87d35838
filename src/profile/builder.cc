// Builds a profile entry by entry. Equal strings, modules, locations and stacks are entered once: beside the profile
// that grows, each of these tables has an index from what an entry says to its place. CompactStrings drops the strings
// that no table needs any more, and builds the two indexes that hold strings again.
#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "perfkit/profile_builder.h"
#include "src/profile/pair_index.h"

namespace perfkit {
namespace {

// Texts are looked up as views, and owned by the index: Profile::strings moves them as it grows.
struct HashText {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using TextIndex = std::unordered_map<std::string, uint32_t, HashText, std::equal_to<>>;

// Calls visit with each index of a string that a table has.
template <class Visit>
void ForEachStringIndex(Profile& profile, Visit&& visit) {
  for (ProfileThread& thread : profile.threads) visit(thread.name);
  for (ProfileModule& module : profile.modules) visit(module.path), visit(module.build_id);
  for (ProfileCall& call : profile.calls) visit(call.function), visit(call.file);
  for (ProfileSample& sample : profile.samples) visit(sample.label), visit(sample.task);
  for (ProfileWait& wait : profile.waits) visit(wait.detail), visit(wait.waker), visit(wait.preempter.command);
  for (ProfileMemory& memory : profile.memory) visit(memory.name);
  for (ProfileZone& zone : profile.zones) {
    visit(zone.name), visit(zone.cause), visit(zone.reason), visit(zone.state);
    visit(zone.worst_by);
  }
  for (ProfileTaskPart& part : profile.task_parts) visit(part.name), visit(part.task);
  for (ProfileCounter& counter : profile.counters) visit(counter.name);
}

profile::PairKey LocationKey(uint32_t module, uint64_t address, bool kernel) {
  return {uint64_t{module} << 1 | (kernel ? 1 : 0), address};
}

profile::PairKey StackKey(uint32_t parent, uint32_t location, bool is_guess, bool is_stitched) {
  const uint64_t flags = (is_guess ? 1 : 0) | (is_stitched ? 2 : 0);
  return {parent, uint64_t{location} << 2 | flags};
}

}  // namespace

struct ProfileBuilder::Impl {
  Profile profile;
  TextIndex strings{{"", 0}};
  profile::PairIndex modules, locations, stacks;
  uint64_t functions = 0;  // locations that Function made: their addresses
};

ProfileBuilder::ProfileBuilder() : impl_(std::make_unique<Impl>()) {}
ProfileBuilder::ProfileBuilder(ProfileBuilder&&) noexcept = default;
ProfileBuilder& ProfileBuilder::operator=(ProfileBuilder&&) noexcept = default;
ProfileBuilder::~ProfileBuilder() = default;

uint32_t ProfileBuilder::String(std::string_view text) {
  if (const auto found = impl_->strings.find(text); found != impl_->strings.end()) return found->second;
  const auto index = static_cast<uint32_t>(impl_->profile.strings.size());
  impl_->profile.strings.emplace_back(text);
  impl_->strings.emplace(text, index);
  return index;
}

uint32_t ProfileBuilder::Module(std::string_view path, std::string_view build_id) {
  const ProfileModule module{.path = String(path), .build_id = String(build_id)};
  const auto [entry, is_new] =
      impl_->modules.try_emplace({module.path, module.build_id}, impl_->profile.modules.size());
  if (is_new) impl_->profile.modules.push_back(module);
  return entry->second;
}

uint32_t ProfileBuilder::Location(uint32_t module, uint64_t address, bool kernel) {
  const auto [entry, is_new] =
      impl_->locations.try_emplace(LocationKey(module, address, kernel), impl_->profile.locations.size());
  if (is_new) impl_->profile.locations.push_back({.module = module, .kernel = kernel, .address = address});
  return entry->second;
}

uint32_t ProfileBuilder::Stack(uint32_t parent, uint32_t location, bool is_guess, bool is_stitched) {
  const auto [entry, is_new] =
      impl_->stacks.try_emplace(StackKey(parent, location, is_guess, is_stitched), impl_->profile.stacks.size());
  if (is_new) {
    impl_->profile.stacks.push_back(
        {.parent = parent, .location = location, .is_guess = is_guess, .is_stitched = is_stitched});
  }
  return entry->second;
}

std::optional<uint32_t> ProfileBuilder::FindLocation(uint32_t module, uint64_t address, bool kernel) const {
  return impl_->locations.Find(LocationKey(module, address, kernel));
}

std::optional<uint32_t> ProfileBuilder::FindStack(uint32_t parent, uint32_t location, bool is_guess,
                                                  bool is_stitched) const {
  return impl_->stacks.Find(StackKey(parent, location, is_guess, is_stitched));
}

uint32_t ProfileBuilder::Function(std::string_view name, std::string_view module, std::string_view file,
                                  uint32_t line) {
  // The address is made up: code that really is there has a location, and a name, of its own.
  constexpr uint64_t kFunctionBytes = 0x100;
  const auto location = static_cast<uint32_t>(impl_->profile.locations.size());
  impl_->profile.locations.push_back({.module = Module(module), .address = kFunctionBytes * ++impl_->functions});
  const ProfileCall call{.function = String(name), .file = String(file), .line = line};
  SetCalls(location, std::span(&call, 1));
  return location;
}

void ProfileBuilder::SetCalls(uint32_t location, std::span<const ProfileCall> calls) {
  Profile& profile = impl_->profile;
  ProfileLocation& at = profile.locations[location];
  at.first_call = static_cast<uint32_t>(profile.calls.size());
  at.calls = static_cast<uint32_t>(calls.size());
  profile.calls.insert(profile.calls.end(), calls.begin(), calls.end());
}

uint16_t ProfileBuilder::AddEvent(ProfileEvent event) {
  impl_->profile.events.push_back(std::move(event));
  return static_cast<uint16_t>(impl_->profile.events.size() - 1);
}

uint32_t ProfileBuilder::AddThread(uint32_t pid, uint32_t tid, std::string_view name) {
  impl_->profile.threads.push_back({.pid = pid, .tid = tid, .name = String(name)});
  return static_cast<uint32_t>(impl_->profile.threads.size() - 1);
}

uint32_t ProfileBuilder::AddWait(const ProfileWait& wait) {
  impl_->profile.waits.push_back(wait);
  return static_cast<uint32_t>(impl_->profile.waits.size() - 1);
}

uint32_t ProfileBuilder::AddMemory(const ProfileMemory& memory) {
  impl_->profile.memory.push_back(memory);
  return static_cast<uint32_t>(impl_->profile.memory.size() - 1);
}

void ProfileBuilder::AddSample(const ProfileSample& sample) { impl_->profile.samples.push_back(sample); }

void ProfileBuilder::AddZone(const ProfileZone& zone) { impl_->profile.zones.push_back(zone); }

void ProfileBuilder::CompactStrings() {
  Profile& profile = impl_->profile;
  std::vector<bool> is_used(profile.strings.size());
  is_used[0] = true;
  ForEachStringIndex(profile, [&](uint32_t index) { is_used[index] = true; });
  std::vector<uint32_t> renamed(profile.strings.size());
  uint32_t count = 0;
  for (uint32_t i = 0; i < renamed.size(); ++i) {
    if (!is_used[i]) continue;
    renamed[i] = count;
    if (count != i) profile.strings[count] = std::move(profile.strings[i]);
    ++count;
  }
  profile.strings.resize(count);
  profile.strings.shrink_to_fit();
  ForEachStringIndex(profile, [&](uint32_t& index) { index = renamed[index]; });
  TextIndex strings;
  for (uint32_t i = 0; i < count; ++i) strings.emplace(profile.strings[i], i);
  impl_->strings = std::move(strings);
  // Locations and stacks are indexed by the numbers of modules and locations, which did not change.
  impl_->modules = {};
  for (uint32_t i = 0; i < profile.modules.size(); ++i) {
    impl_->modules.try_emplace({profile.modules[i].path, profile.modules[i].build_id}, i);
  }
}

Profile& ProfileBuilder::profile() { return impl_->profile; }
const Profile& ProfileBuilder::profile() const { return impl_->profile; }

Profile ProfileBuilder::Take() {
  std::unique_ptr<Impl> taken = std::exchange(impl_, std::make_unique<Impl>());
  Profile& profile = taken->profile;
  std::stable_sort(profile.samples.begin(), profile.samples.end(),
                   [](const ProfileSample& a, const ProfileSample& b) { return a.time_ns < b.time_ns; });
  return std::move(profile);
}

}  // namespace perfkit
