// Builds a profile by hand. Equal strings, modules, locations and stacks are stored once.
//
//   perfkit::ProfileBuilder builder;
//   const uint16_t event = builder.AddEvent({.name = "cpu-clock", .unit = perfkit::ProfileUnit::kNanoseconds});
//   const uint32_t main = builder.Function("main", "app", "main.cc", 10);
//   const uint32_t work = builder.Function("work", "app", "work.cc", 20);
//   builder.AddSample({.time_ns = 1, .weight = 1'000'000, .thread = builder.AddThread(1, 1, "app"),
//                      .stack = builder.Stack(builder.Stack(perfkit::ProfileStack::kRoot, main), work),
//                      .event = event, .quality = perfkit::StackQuality::kWhole});
//   perfkit::Profile profile = builder.Take();
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "perfkit/profile.h"

namespace perfkit {

// Movable, not copyable: a moved-from one may only be assigned to or destroyed. Not thread-safe: any thread may call
// it, one at a time. Checks no index: Profile::Check() does.
class ProfileBuilder {
 public:
  ProfileBuilder();
  ProfileBuilder(ProfileBuilder&&) noexcept;
  ProfileBuilder& operator=(ProfileBuilder&&) noexcept;
  ~ProfileBuilder();

  // Return the index of an equal entry, or of a new one if there is none.
  uint32_t String(std::string_view text);
  uint32_t Module(std::string_view path, std::string_view build_id = {});
  // `module` is an index, or ProfileLocation::kNoModule.
  uint32_t Location(uint32_t module, uint64_t address, bool kernel = false);
  // `parent` is an index, or ProfileStack::kRoot. A distinct stack takes at most 128 bytes, and 24 in the profile after
  // Take; the first ones take 4 KiB together.
  uint32_t Stack(uint32_t parent, uint32_t location, bool is_guess = false, bool is_stitched = false);

  // Return the index of an equal entry, or nullopt if there is none.
  std::optional<uint32_t> FindLocation(uint32_t module, uint64_t address, bool kernel = false) const;
  std::optional<uint32_t> FindStack(uint32_t parent, uint32_t location, bool is_guess = false,
                                    bool is_stitched = false) const;

  // Returns the index of a new location with one call, at a made-up address. Location and FindLocation do not return
  // it.
  uint32_t Function(std::string_view name, std::string_view module, std::string_view file = {}, uint32_t line = 0);
  // Sets the calls of a location, innermost first.
  void SetCalls(uint32_t location, std::span<const ProfileCall> calls);

  // Add an entry, and return its index.
  uint16_t AddEvent(ProfileEvent event);  // at most 65,536
  uint32_t AddThread(uint32_t pid, uint32_t tid, std::string_view name);
  uint32_t AddWait(const ProfileWait& wait);
  uint32_t AddMemory(const ProfileMemory& memory);
  // Add an entry.
  void AddSample(const ProfileSample& sample);
  void AddZone(const ProfileZone& zone);

  // Drops the strings that no entry refers to. The indices of the others change, in all tables: those that String
  // returned before are invalid.
  void CompactStrings();

  // Return the profile so far, to read it, or to change and add entries of all tables but strings, modules, locations
  // and stacks: if one of those is changed, the functions above still find it by the contents that it was added with.
  // Valid until Take.
  Profile& profile();
  const Profile& profile() const;

  // Returns the profile with its samples sorted by time. Leaves the builder empty.
  Profile Take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace perfkit
