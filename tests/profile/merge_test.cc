// Merging profiles: sums by name stay, in whatever order.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "tests/profile/random_profile.h"
#include "tests/profile/sample_profile.h"

namespace perfkit::profile {
namespace {

Profile Merged(Profile a, const Profile& b) {
  a.Merge(b);
  return a;
}

SumsByName Plus(SumsByName a, const SumsByName& b) {
  for (const auto& [key, sum] : b) AddTo(a, key.first, key.second, sum);
  return a;
}

TEST_CASE("merged profiles add up, in any order", "[profile][merge]") {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    const Profile a = RandomProfile(3 * seed).Make(), b = RandomProfile(3 * seed + 1).Make();
    Profile c = RandomProfile(3 * seed + 2, {.functions = 20, .threads = 5}).Make();
    c.events[1].name = "cycles";
    const SumsByName expected = Plus(Plus(SumsByStack(a), SumsByStack(b)), SumsByStack(c));
    for (const Profile& all : {Merged(Merged(a, b), c), Merged(a, Merged(b, c)), Merged(Merged(c, b), a)}) {
      CHECK(all.Check() == absl::OkStatus());
      CHECK(SumsByStack(all) == expected);
      CHECK(all.events.size() == 4);
      CHECK(all.threads.size() == 5);
      CHECK(all.zones.size() == a.zones.size() + b.zones.size() + c.zones.size());
    }
  }
}

TEST_CASE("a profile merged with itself has the same tables and twice the weight", "[profile][merge]") {
  for (const Profile& once : {SampleProfile(), RandomProfile(7).Make()}) {
    Profile twice = once;
    twice.Merge(twice);
    CHECK(twice.Check() == absl::OkStatus());
    CHECK(twice.strings == once.strings);
    CHECK(twice.locations.size() == once.locations.size());
    CHECK(twice.stacks.size() == once.stacks.size());
    CHECK(twice.threads.size() == once.threads.size());
    CHECK(twice.accounting.notes == once.accounting.notes);
    CHECK(twice.program == once.program);
    for (size_t event = 0; event < once.events.size(); ++event) {
      CHECK(twice.Total(event).weight == 2 * once.Total(event).weight);
      CHECK(twice.Total(event).samples == 2 * once.Total(event).samples);
    }
  }
}

TEST_CASE("an empty profile changes nothing", "[profile][merge]") {
  const Profile profile = RandomProfile(1).Make();
  for (const Profile& merged : {Merged(profile, {}), Merged({}, profile)}) {
    CHECK(merged.Check() == absl::OkStatus());
    CHECK(SumsByStack(merged) == SumsByStack(profile));
    CHECK(merged.from_ns == profile.from_ns);
    CHECK(merged.to_ns == profile.to_ns);
    CHECK(merged.program == profile.program);
  }
}

// A profile with one sample in code that was made at run time.
Profile JitProfile(std::string_view function) {
  ProfileBuilder builder;
  builder.AddEvent({.name = "cycles"});
  builder.AddThread(1, 1, "app");
  builder.AddSample({.time_ns = 1,
                     .weight = 1,
                     .stack = builder.Stack(ProfileStack::kRoot, builder.Function(function, "//anon")),
                     .quality = StackQuality::kWhole});
  return builder.Take();
}

TEST_CASE("two functions at one address stay two", "[profile][merge]") {
  const Profile merged = Merged(Merged(JitProfile("f"), JitProfile("g")), JitProfile("f"));
  CHECK(merged.locations.size() == 2);
  CHECK(SumsByStack(merged) ==
        Plus(Plus(SumsByStack(JitProfile("f")), SumsByStack(JitProfile("g"))), SumsByStack(JitProfile("f"))));
}

TEST_CASE("sums of ended threads are merged by their names", "[profile][merge]") {
  const auto with_sums = [](uint32_t ended, std::string_view first, std::string_view second) {
    ProfileBuilder builder;
    const uint32_t event = builder.AddEvent({.name = "page-faults"});
    uint32_t tid = ProfileThread::kFirstSum;
    for (const std::string_view name : {first, second}) {
      const uint32_t thread = builder.AddThread(1, tid++, name);
      builder.profile().threads[thread].ended = ended;
      builder.profile().threads[thread].on_ns = 10;
      builder.AddSample({.weight = 5, .thread = thread, .event = static_cast<uint16_t>(event)});
    }
    return builder.Take();
  };
  const Profile merged = Merged(with_sums(2, "reader", "writer"), with_sums(1000, "writer", "other"));
  CHECK(merged.Check() == absl::OkStatus());
  REQUIRE(merged.threads.size() == 3);
  CHECK(merged.ThreadName(0) == "reader (2 ended threads)");
  CHECK(merged.ThreadName(1) == "writer (1,002 ended threads)");
  CHECK(merged.ThreadName(2) == "other (1,000 ended threads)");
  CHECK(merged.ThreadCount() == 2004);
  CHECK(merged.threads[1].on_ns == 20);
  CHECK(merged.threads[2].tid == ProfileThread::kFirstSum + 2);
  CHECK(merged.Total(0) == Profile::Sum{20, 4});

  std::vector<Profile> parts;
  for (uint32_t i = 0; i < merged.threads.size(); ++i) parts.push_back(merged.Filtered({.threads = {i}}));
  const Profile again = Merged(Merged(parts[0], parts[1]), parts[2]);
  REQUIRE(again.threads.size() == merged.threads.size());
  for (size_t i = 0; i < again.threads.size(); ++i) CHECK(again.threads[i].ended == merged.threads[i].ended);
  CHECK(again.Total(0) == merged.Total(0));
}

TEST_CASE("merged and filtered profiles keep who preempted a thread", "[profile][merge]") {
  const auto made = [](const char* first_string) {
    ProfileBuilder builder;
    builder.String(first_string);  // so that the same names have other indexes
    const uint16_t event = builder.AddEvent({.name = std::string(kOffCpuEvent), .unit = ProfileUnit::kNanoseconds});
    const uint32_t thread = builder.AddThread(1, 1, "main");
    for (const char* const name : {"cc1plus", "make", "cc1plus"}) {
      const ProfilePreempter preempter{.tid = 5, .command = builder.String(name), .others = 2};
      const uint32_t wait = builder.AddWait({.preempted = true, .preempter = preempter});
      builder.AddSample({.time_ns = 10, .weight = 1, .thread = thread, .wait = wait, .event = event});
    }
    return builder.Take();
  };
  const Profile merged = Merged(made("a"), made("cc1plus")).Filtered({.to_ns = 11});
  REQUIRE(merged.Check() == absl::OkStatus());
  REQUIRE(merged.samples.size() == 6);
  std::map<std::string, int> preempted;
  for (const ProfileSample& sample : merged.samples) {
    const ProfilePreempter& preempter = merged.waits[sample.wait].preempter;
    CHECK((preempter.tid == 5 && preempter.others == 2));
    ++preempted[merged.strings[preempter.command]];
  }
  CHECK(preempted == std::map<std::string, int>{{"cc1plus", 4}, {"make", 2}});
}

TEST_CASE("merged profiles keep the memory that was touched", "[profile][merge]") {
  const auto made = [](const char* first_string, uint64_t from) {
    ProfileBuilder builder;
    builder.String(first_string);  // so that the same names have other indexes
    const uint16_t event = builder.AddEvent({.name = "page-faults"});
    const uint32_t thread = builder.AddThread(1, 1, "main");
    builder.AddMemory({1, 2, builder.String("unused")});
    const uint32_t memory = builder.AddMemory({from, from + 4096, builder.String("[heap]")});
    builder.AddSample({.time_ns = 10, .weight = 1, .thread = thread, .event = event, .memory = memory});
    builder.AddSample({.time_ns = 10, .weight = 1, .thread = thread, .event = event});
    return builder.Take();
  };
  const Profile merged = Merged(Merged(made("a", 8192), made("[heap]", 8192)), made("b", 4096));
  REQUIRE(merged.Check() == absl::OkStatus());
  std::map<uint64_t, int> touched;
  for (const ProfileSample& sample : merged.samples) {
    if (sample.memory == ProfileSample::kNoMemory) continue;
    const ProfileMemory& memory = merged.memory[sample.memory];
    CHECK((merged.strings[memory.name] == "[heap]" && memory.to == memory.from + 4096));
    ++touched[memory.from];
  }
  CHECK(touched == std::map<uint64_t, int>{{4096, 1}, {8192, 2}});
  CHECK(merged.memory.size() == 3);
}

TEST_CASE("accounting, threads and counters of merged profiles", "[profile][merge]") {
  Profile a = SampleProfile(), b = SampleProfile();
  a.events[0].accounting = {.counted = 10, .lost = 1, .stacks = {.stale = 2}};
  b.events[0].accounting = {.counted = 5, .lost = 2, .stacks = {.stale = 3}, .counted_is_lower_bound = true};
  b.accounting.zone_records_lost = 4;
  b.accounting.dumps_dropped = 6;
  b.accounting.task_records_lost = 5, b.accounting.task_parts_forgotten = 6;
  b.accounting.switches_read = 100, b.accounting.switches_lost = 3;
  b.accounting.notes.push_back("more");
  b.program = "other";
  b.threads[0].on_ns = 100, b.threads[0].last_ns = 9;
  b.threads[1].first_ns = 5;  // the number was given out again
  b.counters[0].points.push_back({1'150'000'000, 7});
  const Profile merged = Merged(Merged(a, b), b);
  CHECK(merged.events[0].accounting.counted == 20);
  CHECK(merged.events[0].accounting.lost == 5);
  CHECK(merged.events[0].accounting.stacks.stale == 8);
  CHECK(merged.events[0].accounting.counted_is_lower_bound);
  CHECK(merged.accounting.zone_records_lost == 8);
  CHECK(merged.accounting.dumps_dropped == 12);
  CHECK((merged.accounting.task_records_lost == 10 && merged.accounting.task_parts_forgotten == 12));
  CHECK((merged.accounting.switches_read == 200 && merged.accounting.switches_lost == 6));
  CHECK(merged.accounting.notes == std::vector<std::string>{"stacks: live", "3 samples lost", "more"});
  CHECK(merged.program == "app, other");
  b.program = "other, third";
  CHECK(Merged(merged, b).program == "app, other, third");
  CHECK(Merged(b, merged).program == "other, third, app");
  REQUIRE(merged.threads.size() == 3);
  CHECK(merged.threads[0].on_ns == 200);
  CHECK(merged.threads[0].last_ns == 9);
  REQUIRE(merged.counters.size() == 1);
  CHECK(merged.counters[0].points.size() == 4);
  CHECK(merged.waits.size() == 2);
}

TEST_CASE("filtered by time and merged again, a profile has each zone and part of a task once",
          "[profile][merge][filter]") {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    Profile profile = RandomProfile(seed).Make();
    std::erase_if(profile.samples, [](const ProfileSample& sample) { return sample.merged(); });
    for (uint64_t from_ns = 1000; from_ns < 2000; from_ns += 90) {
      profile.task_parts.push_back({.from_ns = from_ns, .to_ns = from_ns + 100, .number = 1});
    }
    for (ProfileThread& thread : profile.threads) thread.on_ns = 10, thread.off_ns = 20;
    // Two that are equal stay two.
    for (int i = 0; i < 2; ++i) profile.zones.push_back({.from_ns = 1300, .to_ns = 1500, .name = 1});
    const Profile first = profile.Filtered({.to_ns = 1400}), second = profile.Filtered({.from_ns = 1400});
    CHECK(first.zones.size() + second.zones.size() > profile.zones.size());
    CHECK(first.task_parts.size() + second.task_parts.size() > profile.task_parts.size());
    for (const Profile& merged : {Merged(first, second), Merged(second, first)}) {
      CHECK(merged.Check() == absl::OkStatus());
      CHECK(SumsByStack(merged) == SumsByStack(profile));
      CHECK(merged.zones.size() == profile.zones.size());
      CHECK(merged.task_parts.size() == profile.task_parts.size());
      // How much of a thread's time lies in the filter is not known.
      for (const ProfileThread& thread : merged.threads) CHECK((thread.on_ns == 0 && thread.off_ns == 0));
    }
  }
}

TEST_CASE("filtered by label, task or function and merged again, a profile has no thread's time twice",
          "[profile][merge][filter]") {
  ProfileBuilder builder;
  builder.AddEvent({.name = "page-faults"});
  const uint32_t thread = builder.AddThread(1, 1, "main");
  builder.profile().threads[thread].on_ns = 10;
  const uint32_t sum = builder.AddThread(1, ProfileThread::kFirstSum, "reader");
  builder.profile().threads[sum].ended = 7;
  for (const uint32_t of : {thread, sum}) {
    for (const char* name : {"a", "b"}) {
      const uint32_t text = builder.String(name);
      builder.AddSample({.weight = 1, .thread = of, .label = text, .task = text});
    }
  }
  const Profile profile = builder.Take();
  for (const auto part : {&Profile::Filter::label, &Profile::Filter::task}) {
    Profile::Filter first, second;
    first.*part = "a", second.*part = "b";
    const Profile merged = Merged(profile.Filtered(first), profile.Filtered(second));
    CHECK(merged.Total(0) == profile.Total(0));
    CHECK(merged.threads[thread].on_ns == 0);
    CHECK(merged.threads[sum].ended == 0);
    CHECK(merged.ThreadName(sum) == "reader (ended threads)");
  }
  CHECK(profile.Filtered({.function = "none"}).threads[thread].on_ns == 0);
  CHECK(profile.Filtered({.thread_name = "main"}).threads[thread].on_ns == 10);
}

TEST_CASE("a frame that two profiles know in part is one, with what both know", "[profile][merge][filter]") {
  ProfileBuilder builder;
  builder.AddEvent({.name = "page-faults"});
  const uint32_t thread = builder.AddThread(1, 1, "main");
  for (uint64_t ns = 100; ns < 1100; ns += 10) {
    const char* const label = ns % 20 == 0 ? "draw" : "physics";
    builder.AddSample({.time_ns = ns, .weight = 1, .thread = thread, .label = builder.String(label)});
  }
  for (uint64_t ns = 100; ns < 1000; ns += 100) {
    builder.AddZone({.from_ns = ns,
                     .to_ns = ns + 100,
                     .thread = thread,
                     .name = builder.String("frame"),
                     .reason = builder.String(ns == 300 ? "asked for" : ""),
                     .is_frame = true});
  }
  const Profile whole = builder.Take();
  const Profile draw = whole.Filtered({.label = "draw"}), physics = whole.Filtered({.label = "physics"});
  REQUIRE_FALSE(draw.zones[0].is_whole);
  const auto wholes = [](const Profile& of) {
    return std::ranges::count_if(of.zones, [](const ProfileZone& zone) { return zone.is_whole; });
  };
  for (const Profile& merged : {Merged(draw, physics), Merged(whole, draw), Merged(physics, whole)}) {
    CHECK(merged.Check() == absl::OkStatus());
    CHECK(merged.zones.size() == whole.zones.size());
  }
  CHECK(wholes(Merged(draw, physics)) == 0);
  CHECK(wholes(Merged(whole, draw)) == wholes(whole));
  CHECK(wholes(Merged(physics, whole)) == wholes(whole));
  // What one profile does not know comes from the other.
  Profile told = whole;
  told.zones[0].reason = told.zones[2].reason;
  told.zones[1].is_reference = true;
  for (const Profile& merged : {Merged(told, whole), Merged(whole, told)}) {
    REQUIRE(merged.zones.size() == whole.zones.size());
    CHECK(merged.strings[merged.zones[0].reason] == "asked for");
    CHECK(merged.zones[1].is_reference);
  }
}

TEST_CASE("a profile with more events than samples can tell apart is refused", "[profile][merge]") {
  Profile many;
  many.strings.emplace_back();
  many.events.resize(65'536);
  CHECK(many.Check().ok());
  many.events.emplace_back();
  CHECK(many.Check().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("parts of a profile by time have no sums of threads to count twice", "[profile][merge][filter]") {
  ProfileBuilder builder;
  builder.AddEvent({.name = "page-faults"});
  builder.AddThread(1, 1, "main");
  builder.AddSample({.time_ns = 10, .weight = 1});
  builder.AddSample({.time_ns = 20, .weight = 1});
  const uint32_t sum = builder.AddThread(1, ProfileThread::kFirstSum, "reader");
  builder.profile().threads[sum].ended = 7;
  builder.AddSample({.weight = 5, .thread = sum});
  const Profile profile = builder.Take();
  REQUIRE(profile.ThreadCount() == 8);
  const Profile merged = Merged(profile.Filtered({.to_ns = 15}), profile.Filtered({.from_ns = 15}));
  CHECK(merged.Check() == absl::OkStatus());
  CHECK(merged.Total(0) == Profile::Sum{2, 2});
  CHECK(merged.ThreadCount() == 1);
}

}  // namespace
}  // namespace perfkit::profile
