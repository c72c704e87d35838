// Whole stacks of another process, from dumps.
#include <catch2/catch.hpp>
#include <string>

#include "perfkit/profile_collector.h"
#include "perfkit/report.h"
#include "tests/session/spinning_process.h"
#include "tests/session/support.h"

namespace perfkit::session {
namespace {

// From the outermost call to the innermost, with blanks between them.
std::string NamesOf(const Profile& profile, uint32_t stack) {
  std::string calls;
  for (; stack != ProfileStack::kRoot; stack = profile.stacks[stack].parent) {
    const uint32_t location = profile.stacks[stack].location;
    for (const ProfileCall& call : profile.CallsAt(location)) calls = profile.CallName(location, call) + " " + calls;
  }
  return calls;
}

TEST_CASE("another process has whole stacks, with names", "[collector][law]") {
  const SpinningProcess process("collected");
  const SamplerOptions options{.events = {{.event = "cpu-clock:u", .rate = Period{1'000'000}}},
                               .stack = CallStack::UserDump(60 << 10),
                               .side_band = true};
  absl::StatusOr<Sampler> sampler = Sampler::Open(options, Target::Process(process.pid()));
  REQUIRE(sampler.status() == absl::OkStatus());
  ProfileCollector collector(options);
  REQUIRE(sampler->Start() == absl::OkStatus());
  size_t samples = 0;
  const auto add = [&](const SamplerRecord& record) {
    collector.Add(record, sampler->layout());
    samples += record.event != SamplerRecord::kNoEvent ? 1 : 0;
  };
  while (samples < 20) {
    sampler->Drain(add);
    usleep(1000);
  }
  CHECK(sampler->Stop() == absl::OkStatus());
  sampler->Drain(add);
  const Profile profile = collector.MakeProfile(*sampler);
  CheckLaws(profile);
  size_t whole = 0;  // the first samples may be of the child's way to its loop
  for (const ProfileSample& sample : profile.samples) {
    const std::string calls = NamesOf(profile, sample.stack);
    UNSCOPED_INFO(StackQualityName(sample.quality) << ": " << calls);
    whole += sample.quality == StackQuality::kWhole && calls.find("main ") != std::string::npos &&
             calls.find("CallSpinInChild() perfkit::session::SpinInChild()") != std::string::npos;
  }
  CHECK(whole > 0);
}

}  // namespace
}  // namespace perfkit::session
