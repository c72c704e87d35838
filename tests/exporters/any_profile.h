// Small profiles in which everything occurs that Profile::Check() allows, drawn by a seed.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "perfkit/profile_builder.h"
#include "tests/support/work.h"

namespace perfkit::testing {

// How many seeds a test draws: a sanitizer makes each profile several times as slow.
constexpr uint64_t Seeds(uint64_t usual) { return kSanitized ? usual / 5 : usual; }

class AnyProfile {
 public:
  explicit AnyProfile(uint64_t seed) : random_(seed) {}

  Profile Make() {
    Profile& profile = builder_.profile();
    profile.program = OneOf({"app", "", "two words"});
    profile.from_ns = 1'000'000'000, profile.to_ns = 2'000'000'000;
    profile.realtime_offset_ns = Chance(4) ? 0 : 1'700'000'000'000'000'000;
    AddTables();
    AddSamples();
    if (!profile.threads.empty()) AddTimeline();
    if (Chance(2)) profile.accounting.notes = {"a note", "another; \"one\""};
    return builder_.Take();
  }

 private:
  uint64_t Below(uint64_t end) { return random_() % end; }
  bool Chance(uint64_t in) { return Below(in) == 0; }
  std::string OneOf(std::vector<std::string> texts) { return texts[Below(texts.size())]; }
  std::string Name() {
    return OneOf({"f", "g", "ns::Class<int>::h(char const*)", "ünïcödé", "a;b", "q\"q", "<x>&", "new\nline"});
  }

  void AddTables() {
    const char* const names[] = {"cpu-clock", "page-faults", "off-cpu", "bytes"};
    const ProfileUnit units[] = {ProfileUnit::kNanoseconds, ProfileUnit::kCount, ProfileUnit::kNanoseconds,
                                 ProfileUnit::kBytes};
    const uint64_t events = Below(5);
    for (uint64_t i = 0; i < events; ++i) builder_.AddEvent({.name = names[i], .unit = units[i]});
    const uint64_t threads = Below(5);
    for (uint64_t i = 0; i < threads; ++i) {
      const auto pid = static_cast<uint32_t>(Chance(4) ? 7 : 42);
      builder_.AddThread(pid, static_cast<uint32_t>(100 + i), OneOf({"main", "worker", "", "t \"1\"", "wörker"}));
    }
    const uint64_t locations = 1 + Below(8);
    for (uint64_t i = 0; i < locations; ++i) AddLocation(0x1000 + i);
    const uint64_t stacks = Below(30);
    for (uint64_t i = 0; i < stacks; ++i) {
      const uint64_t known = builder_.profile().stacks.size();
      const uint32_t parent = known == 0 || Chance(5) ? ProfileStack::kRoot : static_cast<uint32_t>(Below(known));
      builder_.Stack(parent, static_cast<uint32_t>(Below(locations)), Chance(9), Chance(9));
    }
    for (int i = 0; i < 4; ++i) {
      builder_.AddWait({.preempted = Chance(3),
                        .blocked_in_syscall = Chance(2),
                        .syscall = static_cast<int32_t>(Below(300)),
                        .detail = Chance(2) ? builder_.String(OneOf({"futex 0x1000", "/tmp/log"})) : 0});
    }
  }

  void AddLocation(uint64_t address) {
    const uint32_t module = Chance(5) ? ProfileLocation::kNoModule
                                      : builder_.Module(OneOf({"/bin/app", "/lib/lib.so", "[vdso]", "[kernel]"}),
                                                        OneOf({"", "0123456789abcdef"}));
    const uint32_t location = builder_.Location(module, address, Chance(5));
    std::vector<ProfileCall> calls;
    const uint64_t count = Below(4);
    for (uint64_t i = 0; i < count; ++i) {
      calls.push_back({.function = Chance(6) ? 0 : builder_.String(Name()),
                       .file = Chance(3) ? 0 : builder_.String(OneOf({"/src/a.cc", "/src/b b.h"})),
                       .line = static_cast<uint32_t>(Below(3) * 10),
                       .inlined = i + 1 < count});
    }
    builder_.SetCalls(location, calls);
  }

  void AddSamples() {
    const Profile& profile = builder_.profile();
    if (profile.events.empty() || profile.threads.empty()) return;
    const uint64_t samples = Below(60);
    for (uint64_t i = 0; i < samples; ++i) {
      const bool has_stack = !profile.stacks.empty() && !Chance(8);
      ProfileSample sample{
          .time_ns = Chance(6) ? 0 : 1'000'000'000 + Below(1'000) * 1'000'000,
          .weight = Chance(10) ? 0 : Below(1'000'000),
          .samples = static_cast<uint32_t>(Chance(5) ? Below(9) : 1),
          .thread = static_cast<uint32_t>(Below(profile.threads.size())),
          .stack = has_stack ? static_cast<uint32_t>(Below(profile.stacks.size())) : ProfileStack::kRoot,
          .label = Chance(2) ? builder_.String(OneOf({"physics", "draw"})) : 0,
          .wait = Chance(4) ? static_cast<uint32_t>(Below(profile.waits.size())) : ProfileSample::kNoWait,
          .event = static_cast<uint16_t>(Below(profile.events.size())),
          .quality = has_stack ? static_cast<StackQuality>(Below(4)) : StackQuality::kNone};
      if (Chance(3)) {
        sample.task = builder_.String(OneOf({"path", "path/expand", "draw"}));
        sample.task_number = Below(4);  // 0: merged, or not known
      }
      builder_.AddSample(sample);
      if (!Chance(3)) continue;
      sample.event = static_cast<uint16_t>(Below(profile.events.size()));  // a follower of it
      sample.samples = 0, sample.weight = Below(100);
      builder_.AddSample(sample);
    }
  }

  void AddTimeline() {
    const uint64_t zones = Below(20);
    for (uint64_t i = 0; i < zones; ++i) {
      const uint64_t from_ns = 1'000'000'000 + Below(100) * 10'000'000;  // nested, overlapping and empty ones
      builder_.AddZone({.from_ns = from_ns,
                        .to_ns = from_ns + Below(20) * 10'000'000,
                        .thread = static_cast<uint32_t>(Below(builder_.profile().threads.size())),
                        .name = builder_.String(Chance(4) ? "frame " + std::to_string(1 + i) : Name()),
                        .cause = Chance(4) ? builder_.String("slow") : 0,
                        .is_frame = Chance(3)});
    }
    const uint64_t parts = Below(20);
    for (uint64_t i = 0; i < parts; ++i) {
      const uint64_t from_ns = 1'000'000'000 + 100 * i;
      const std::string task = OneOf({"path", "draw"});  // two may have one number: those of two TaskCounters
      builder_.profile().task_parts.push_back(
          {.from_ns = from_ns,
           .to_ns = from_ns + Below(100),
           .number = 1 + Below(4),
           .thread = static_cast<uint32_t>(Below(builder_.profile().threads.size())),
           .name = builder_.String(task),
           .task = builder_.String(task + OneOf({"", "/expand"}))});
    }
    const uint64_t counters = Below(3);
    for (uint64_t i = 0; i < counters; ++i) {
      ProfileCounter counter{.name = builder_.String("counter " + std::to_string(i)),
                             .unit = static_cast<ProfileUnit>(Below(3)),
                             .thread = Chance(2) ? ProfileCounter::kWholeProcess : 0};
      const uint64_t points = Below(5);
      for (uint64_t k = 0; k < points; ++k) {
        counter.points.push_back({1'000'000'000 + k * 1'000, static_cast<double>(Below(100)) / 4});
      }
      builder_.profile().counters.push_back(std::move(counter));
    }
  }

  std::mt19937_64 random_;
  ProfileBuilder builder_;
};

}  // namespace perfkit::testing
