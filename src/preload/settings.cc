// Reads each variable, with a default value, and refuses values without a meaning.
#include "src/preload/settings.h"

#include <chrono>
#include <string_view>

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/variables.h"

namespace perfkit::preload {
namespace {

absl::Status Refuse(std::string_view name, std::string_view value, std::string_view remedy) {
  return absl::Status(absl::StatusCode::kInvalidArgument,
                      absl::StrFormat("%s is \"%s\". Remedy: %s", name, value, remedy));
}

struct NamedStacks {
  std::string_view name;
  SessionStacks stacks;
};
constexpr NamedStacks kStackNames[] = {{"dumps", SessionStacks::kDumps},
                                       {"live", SessionStacks::kLive},
                                       {"frame-pointers", SessionStacks::kFramePointers},
                                       {"none", SessionStacks::kNone}};

const NamedStacks* FindStacks(std::string_view name) {
  for (const NamedStacks& one : kStackNames) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

constexpr char kInterval[] = "PERFKIT_PROFILE_INTERVAL", kClock[] = "PERFKIT_PROFILE_CLOCK",
               kEvery[] = "PERFKIT_PROFILE_EVERY", kStacks[] = "PERFKIT_PROFILE_STACKS";

}  // namespace

absl::StatusOr<Settings> ReadSettings(absl::FunctionRef<const char*(const char*)> variable, int pid) {
  const auto value_of = [&](const char* name, std::string_view usual) {
    return base::VariableOr(variable, name, usual);
  };
  Settings settings;
  settings.path = value_of(kPathVariable, "");
  // "123:/tmp/out.html" is a path that process 123 has claimed (ClaimedBy), and "23:59.html" is a file.
  if (const size_t colon = settings.path.find(":/"); colon != std::string::npos) {
    const std::optional<int> owner = base::ParseNumber<int>(std::string_view(settings.path).substr(0, colon));
    if (owner && *owner != pid) return Settings{};
    if (owner) settings.path.erase(0, colon + 1);
  }
  settings.each_process = base::ExpandPid(settings.path, pid);
  const std::string_view interval = value_of(kInterval, "1000");
  const std::optional<int64_t> us = base::ParseNumber<int64_t>(interval);
  if (!us || *us < 10 || *us > 10'000'000) return Refuse(kInterval, interval, "microseconds, from 10 to 10000000");
  settings.session.interval = std::chrono::microseconds(*us);
  const std::string_view clock = value_of(kClock, "wall");
  if (clock != "wall" && clock != "cpu") return Refuse(kClock, clock, "wall or cpu");
  settings.session.clock = clock == "wall" ? SessionClock::kWall : SessionClock::kCpu;
  const std::string_view stacks = value_of(kStacks, "dumps");
  const NamedStacks* const named = FindStacks(stacks);
  if (named == nullptr) return Refuse(kStacks, stacks, "dumps, live, frame-pointers or none");
  settings.session.stacks = named->stacks;
  const std::string_view every = value_of(kEvery, "10");
  const std::optional<int> seconds = base::ParseNumber<int>(every);
  if (!seconds || *seconds < 1 || *seconds > 1'000'000) return Refuse(kEvery, every, "seconds, from 1 to 1000000");
  settings.every_ms = *seconds * 1000;
  return settings;
}

std::string ClaimedBy(const Settings& settings, int pid) { return absl::StrFormat("%d:%s", pid, settings.path); }

}  // namespace perfkit::preload
