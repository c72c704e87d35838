// A profile with unwound dumps under faults: a stack is whole and right, or says that it is not.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

#include "perfkit/profile_collector.h"
#include "perfkit/sampler.h"
#include "tests/support/fault_table.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::Faults;
using testing::RunFaults;

constexpr size_t kDepth = 12, kPagesBelow = 4;

// The calls of itself are kDepth frames.
[[gnu::noinline]] void TouchBelow(testing::FreshPages& memory, size_t depth) {
  volatile char room[32] = {};
  if (depth == 1) {
    memory.Touch(0, memory.pages());
  } else {
    TouchBelow(memory, depth - 1);
  }
  room[1] = room[0];  // no tail call
}

bool IsNamed(const Profile& profile, uint32_t stack, const char* part) {
  for (const ProfileCall& call : profile.CallsAt(profile.stacks[stack].location)) {
    if (profile.strings[call.function].find(part) != std::string::npos) return true;
  }
  return false;
}

// Returns how many frames of a stack are named TouchBelow.
size_t FramesOfTouchBelow(const Profile& profile, uint32_t stack) {
  size_t frames = 0;
  for (; stack != ProfileStack::kRoot; stack = profile.stacks[stack].parent) {
    frames += IsNamed(profile, stack, "TouchBelow") ? 1 : 0;
  }
  return frames;
}

TEST_CASE("dumps are unwound into a profile", "[faults]") {
  RunFaults("`ProfileCollector`: dumped stacks", [](Faults& faults) -> absl::Status {
    SamplerOptions options;
    options.events = {{.event = "page-faults:u", .rate = Period{1}}};
    options.stack = CallStack::UserDump(32 << 10);
    options.ring_bytes = 1 << 20;
    options.side_band = true;
    absl::StatusOr<Sampler> sampler = Sampler::Open(options);
    if (!sampler.ok()) return sampler.status();
    testing::FreshPages memory(kPagesBelow);
    if (absl::Status status = sampler->Start(); !status.ok()) return status;
    TouchBelow(memory, kDepth);
    if (absl::Status status = sampler->Stop(); !status.ok()) return status;
    uint64_t samples = 0;
    faults.Begin();
    ProfileCollector collector(options, {.pid = static_cast<uint32_t>(getpid()), .lines = false});
    sampler->Drain([&](const SamplerRecord& record) {
      collector.Add(record, sampler->layout());
      samples += record.event != SamplerRecord::kNoEvent ? 1 : 0;
    });
    const Profile profile = collector.MakeProfile(*sampler);
    faults.End();
    REQUIRE(profile.Check() == absl::OkStatus());
    CHECK(profile.Total(0).samples == samples);
    CHECK(profile.events.at(0).accounting.delivered == samples);
    size_t right = 0;
    for (const ProfileSample& sample : profile.samples) {
      const size_t frames = FramesOfTouchBelow(profile, sample.stack);
      INFO(StackQualityName(sample.quality) << ", " << frames << " frames");
      CHECK(frames <= kDepth);
      // Others may be faults of the stack, or of code that runs for the first time.
      if (sample.quality != StackQuality::kWhole || !IsNamed(profile, sample.stack, "FreshPages::Touch")) continue;
      CHECK(frames == kDepth);
      right += sample.samples;
    }
    if (right >= kPagesBelow) return absl::OkStatus();
    CHECK_FALSE(faults.none());
    return absl::DataLossError("stacks are not whole, or have no names");
  });
}

}  // namespace
}  // namespace perfkit
