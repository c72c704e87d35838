// The bytes of a Perfetto trace, as protoc shows them without a schema. Perfetto's own schema is in no package, so that
// the golden file is what stands for it: the trace that it was made of was decoded with the protos of perfetto's
// repository, had no field that they have not, and read as the profile says. A change of it needs that once more:
//   protoc -I <perfetto> --decode perfetto.protos.Trace protos/perfetto/trace/trace.proto < file
#include <catch2/catch.hpp>

#include "perfkit/profile_writer.h"
#include "tests/exporters/readers/readers.h"
#include "tests/profile/sample_profile.h"
#include "tests/support/temp_folder.h"

namespace perfkit::testing {
namespace {

// A sample of each kind: labelled, with a follower, off the CPU, in the kernel, merged; zones that overlap.
Profile SmallProfile() {
  ProfileBuilder builder;
  Profile& profile = builder.profile();
  profile.program = "golden program";
  profile.from_ns = 1'000'000, profile.to_ns = 2'000'000;
  profile.realtime_offset_ns = 1'700'000'000'000'000'000;
  builder.AddEvent({.name = "cpu-clock", .unit = ProfileUnit::kNanoseconds, .user_only = true});
  builder.AddEvent({.name = "page-faults"});
  builder.AddEvent({.name = std::string(kOffCpuEvent), .unit = ProfileUnit::kNanoseconds});
  const uint32_t thread = builder.AddThread(42, 42, "main thread"), worker = builder.AddThread(42, 43, "worker thread");
  const profile::SampleStacks stacks = profile::AddSampleStacks(builder);
  ProfileSample sample{.weight = 5'000, .samples = 5, .thread = worker};
  builder.AddSample(sample);
  sample = {.time_ns = 1'100'000,
            .weight = 1'000,
            .thread = thread,
            .stack = stacks.hot,
            .label = builder.String("physics zone"),
            .quality = StackQuality::kWhole};
  builder.AddSample(sample);
  sample.event = 1, sample.samples = 0, sample.weight = 300;
  builder.AddSample(sample);
  builder.AddSample({.time_ns = 1'200'000, .weight = 1'000, .stack = stacks.kernel, .quality = StackQuality::kPart});
  builder.AddSample({.time_ns = 1'300'000,
                     .weight = 50'000,
                     .thread = worker,
                     .stack = stacks.unnamed,
                     .wait = builder.AddWait({.blocked_in_syscall = true, .syscall = 202}),
                     .event = 2,
                     .quality = StackQuality::kLastKnown});
  builder.AddZone({.from_ns = 1'000'000,
                   .to_ns = 1'500'000,
                   .name = builder.String("outer zone"),
                   .cause = builder.String("waited for a lock"),
                   .is_frame = true});
  builder.AddZone({.from_ns = 1'100'000, .to_ns = 1'200'000, .name = builder.String("physics zone")});
  builder.AddZone({.from_ns = 1'150'000, .to_ns = 1'250'000, .name = builder.String("overlapping zone")});
  profile.counters.push_back({.name = builder.String("queue length"), .points = {{1'000'000, 1}, {1'500'000, 5.5}}});
  return builder.Take();
}

// A frame that waited for a lock, beside one before it: who held the lock also woke the thread.
Profile SmallHitch() {
  ProfileBuilder builder;
  Profile& profile = builder.profile();
  profile.program = "golden program";
  builder.AddEvent({.name = std::string(kOffCpuEvent), .unit = ProfileUnit::kNanoseconds});
  const uint32_t thread = builder.AddThread(42, 42, "main thread"), holder = builder.AddThread(42, 43, "holder thread");
  const profile::SampleStacks stacks = profile::AddSampleStacks(builder);
  builder.AddSample({.time_ns = 2'100'000,
                     .weight = 800'000,
                     .thread = thread,
                     .stack = stacks.work,
                     .wait = builder.AddWait({.blocked_in_syscall = true,
                                              .syscall = 202,
                                              .detail = builder.String("futex 0x1000"),
                                              .waker = builder.String("holder thread (43)"),
                                              .holder = holder,
                                              .holder_stack = stacks.hot,
                                              .holder_quality = StackQuality::kWhole}),
                     .quality = StackQuality::kWhole});
  builder.AddZone({.from_ns = 1'900'000,
                   .to_ns = 2'000'000,
                   .thread = thread,
                   .name = builder.String("frame 1"),
                   .is_frame = true});
  builder.AddZone({.from_ns = 2'000'000,
                   .to_ns = 3'000'000,
                   .thread = thread,
                   .name = builder.String("frame 2"),
                   .reason = builder.String("asked for"),
                   .is_frame = true});
  builder.AddZone({.from_ns = 2'000'000, .to_ns = 2'950'000, .thread = holder, .name = builder.String("holder zone")});
  profile.from_ns = 1'000'000, profile.to_ns = 3'000'000;
  return builder.Take();
}

TEST_CASE("the trace of a slow frame has the bytes that were checked by perfetto's own schema", "[readers][perfetto]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/hitch.pftrace";
  const Profile profile = SmallHitch();
  REQUIRE(WriteSlowFrame(profile, ExplainFrame(profile, 1), path) == absl::OkStatus());
  OutputOf("protoc --decode_raw < " + path +
           " | diff " PERFKIT_TEST_DATA "/golden/exporters/perfetto_slow_frame.txt -");
}

TEST_CASE("a Perfetto trace has the bytes that were checked by perfetto's own schema", "[readers][perfetto]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/small.pftrace";
  REQUIRE(WriteProfile(SmallProfile(), path) == absl::OkStatus());
  OutputOf("protoc --decode_raw < " + path + " | diff " PERFKIT_TEST_DATA "/golden/exporters/perfetto.txt -");
}

}  // namespace
}  // namespace perfkit::testing
