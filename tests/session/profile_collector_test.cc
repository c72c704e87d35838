// Profiles of other processes and of whole CPUs, by samplers of the test's own.
#include "perfkit/profile_collector.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "perfkit/child.h"
#include "perfkit/report.h"
#include "tests/session/spinning_process.h"
#include "tests/session/support.h"
#include "tests/support/skip.h"

namespace perfkit::session {
namespace {

SamplerOptions ClockOf(CallStack stack = CallStack::None()) {
  return {.events = {{.event = "cpu-clock:u", .rate = Period{1'000'000}}}, .stack = stack, .side_band = true};
}

uint64_t DrainInto(ProfileCollector& collector, std::vector<Sampler>& samplers) {
  uint64_t samples = 0;
  for (Sampler& sampler : samplers) {
    sampler.Drain([&](const SamplerRecord& record) {
      collector.Add(record, sampler.layout());
      samples += record.event != SamplerRecord::kNoEvent ? 1 : 0;
    });
  }
  return samples;
}

// Samples until there are `wanted` samples, and stops.
void Collect(ProfileCollector& collector, std::vector<Sampler>& samplers, uint64_t wanted) {
  for (Sampler& sampler : samplers) REQUIRE(sampler.Start() == absl::OkStatus());
  for (uint64_t samples = 0; samples < wanted; samples += DrainInto(collector, samplers)) usleep(1000);
  for (Sampler& sampler : samplers) CHECK(sampler.Stop() == absl::OkStatus());
  DrainInto(collector, samplers);
}

std::vector<std::string> FunctionsOf(const Profile& profile) {
  std::vector<std::string> names;
  const FlatProfile flat(profile);
  for (const FlatProfile::Row& row : flat.rows()) names.push_back(FunctionName(profile, row.function));
  return names;
}

bool HasNote(const Profile& profile, const std::string& text) {
  return std::any_of(profile.accounting.notes.begin(), profile.accounting.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

TEST_CASE("another process is profiled: its name, its functions, and all that its sampler counted",
          "[collector][law]") {
  const SpinningProcess process("collected");
  const SamplerOptions options = ClockOf();
  absl::StatusOr<Sampler> sampler = Sampler::Open(options, Target::Process(process.pid()));
  REQUIRE(sampler.status() == absl::OkStatus());
  std::vector<Sampler> samplers;
  samplers.push_back(*std::move(sampler));
  ProfileCollector collector(options);
  Collect(collector, samplers, 20);
  const Profile profile = collector.MakeProfile(samplers[0]);
  CheckLaws(profile);
  REQUIRE(profile.threads.size() == 1);
  CHECK(profile.threads[0].pid == static_cast<uint32_t>(process.pid()));
  CHECK(profile.ThreadName(0) == "collected");
  CHECK_THAT(FunctionsOf(profile), Catch::VectorContains(std::string("perfkit::session::SpinInChild()")));
  CHECK(profile.from_ns < profile.samples.front().time_ns);
  CHECK(profile.samples.back().time_ns <= profile.to_ns);
  CHECK(HasNote(profile, "stacks: none"));
}

// Without the component perfkit::dwarf.
TEST_CASE("dumps that nothing can unwind leave the sampled code, and a note says so", "[collector][law]") {
  const SpinningProcess process("dumped");
  const SamplerOptions options = ClockOf(CallStack::UserDump(1024));
  absl::StatusOr<Sampler> sampler = Sampler::Open(options, Target::Process(process.pid()));
  REQUIRE(sampler.status() == absl::OkStatus());
  std::vector<Sampler> samplers;
  samplers.push_back(*std::move(sampler));
  ProfileCollector collector(options);
  Collect(collector, samplers, 10);
  const Profile profile = collector.MakeProfile(samplers);
  CheckLaws(profile);
  if (HasNote(profile, "stacks: dumps")) SKIP_TEST("perfkit::dwarf is linked");
  CHECK(HasNote(profile, "perfkit::dwarf is not linked. Remedy: link it"));
  for (const ProfileSample& sample : profile.samples) CHECK(sample.quality == StackQuality::kLeafOnly);
}

TEST_CASE("several samplers share a profile, whose accounting is their sum", "[collector][law]") {
  const SpinningProcess first("first"), second("second");
  const SamplerOptions options = ClockOf();
  std::vector<Sampler> samplers;
  for (const pid_t pid : {first.pid(), second.pid()}) {
    absl::StatusOr<Sampler> sampler = Sampler::Open(options, Target::Process(pid));
    REQUIRE(sampler.status() == absl::OkStatus());
    samplers.push_back(*std::move(sampler));
  }
  ProfileCollector collector(options);
  Collect(collector, samplers, 40);
  const Profile profile = collector.MakeProfile(samplers);
  CheckLaws(profile);
  EventAccounting sum;
  for (const Sampler& sampler : samplers) {
    sum.counted += sampler.stats().events[0].counted;
    sum.delivered += sampler.stats().events[0].delivered;
  }
  CHECK(profile.events[0].accounting.counted == sum.counted);
  CHECK(profile.events[0].accounting.delivered == sum.delivered);
  REQUIRE(profile.threads.size() == 2);
  const std::vector<std::string> names = {std::string(profile.ThreadName(0)), std::string(profile.ThreadName(1))};
  CHECK_THAT(names, Catch::UnorderedEquals(std::vector<std::string>{"first", "second"}));
}

TEST_CASE("a program is profiled from its exec on, and each of its page faults is there", "[collector]") {
  absl::StatusOr<Child> child = Child::Spawn({"true"});
  REQUIRE(child.status() == absl::OkStatus());
  const SamplerOptions options{.events = {{.event = "page-faults:u", .rate = Period{1}}}, .side_band = true};
  absl::StatusOr<Sampler> sampler = Sampler::Open(options, child->target());
  REQUIRE(sampler.status() == absl::OkStatus());
  std::vector<Sampler> samplers;
  samplers.push_back(*std::move(sampler));
  ProfileCollector collector(options);
  REQUIRE(child->Start() == absl::OkStatus());
  REQUIRE(child->Wait().status() == absl::OkStatus());
  DrainInto(collector, samplers);
  CHECK(samplers[0].Stop() == absl::OkStatus());
  DrainInto(collector, samplers);
  const Profile profile = collector.MakeProfile(samplers);
  CheckLaws(profile);
  CHECK(profile.Total(0).samples > 0);
  CHECK(profile.Total(0).samples + profile.events[0].accounting.lost == profile.events[0].accounting.counted);
  for (const ProfileSample& sample : profile.samples) CHECK(profile.ThreadName(sample.thread) == "true");
}

TEST_CASE("a profile may be made again and again, and has all until then", "[collector][law]") {
  const SpinningProcess process("again");
  const SamplerOptions options = ClockOf();
  absl::StatusOr<Sampler> sampler = Sampler::Open(options, Target::Process(process.pid()));
  REQUIRE(sampler.status() == absl::OkStatus());
  std::vector<Sampler> samplers;
  samplers.push_back(*std::move(sampler));
  ProfileCollector first(options);
  ProfileCollector collector = std::move(first);
  uint64_t before = 0;
  for (int turn = 0; turn < 3; ++turn) {
    Collect(collector, samplers, 5);
    const Profile profile = collector.MakeProfile(samplers);
    CheckLaws(profile);
    CHECK(profile.Total(0).samples > before);
    before = profile.Total(0).samples;
  }
}

// As record -a does. No record tells of the process, which was there before.
TEST_CASE("on whole CPUs a process that was there before has its name and its functions", "[collector][law]") {
  const SpinningProcess process("was-there");
  const SamplerOptions options = ClockOf();
  absl::StatusOr<Sampler> sampler = Sampler::Open(options, Target::System());
  if (!sampler.ok()) SKIP_TEST("this user may not: " + std::string(sampler.status().message()));
  std::vector<Sampler> samplers;
  samplers.push_back(*std::move(sampler));
  ProfileCollector collector(options);
  REQUIRE(samplers[0].Start() == absl::OkStatus());
  uint64_t samples = 0;
  while (samples < 20) {
    usleep(1000);
    samplers[0].Drain([&](const SamplerRecord& record) {
      collector.Add(record, samplers[0].layout());
      Dispatch(record, samplers[0].layout(),
               [&](const Sample& sample) { samples += sample.task()->pid == static_cast<uint32_t>(process.pid()); });
    });
  }
  CHECK(samplers[0].Stop() == absl::OkStatus());
  DrainInto(collector, samplers);
  const Profile profile = collector.MakeProfile(samplers);
  CheckLaws(profile);
  const Profile::Filter only{.thread_name = "was-there"};
  const Profile filtered = profile.Filtered(only);
  CHECK(filtered.Total(0).samples >= samples);
  CHECK_THAT(FunctionsOf(filtered), Catch::VectorContains(std::string("perfkit::session::SpinInChild()")));
}

}  // namespace
}  // namespace perfkit::session
