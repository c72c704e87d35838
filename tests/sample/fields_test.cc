// Fields and options: supported ones have values, ones without an effect are refused.
#include "tests/sample/support.h"

namespace perfkit {
namespace {

using testing::FaultOptions;

TEST_CASE("samples have registers without a stack", "[fields]") {
#if defined(__x86_64__)
  constexpr unsigned kIp = 8, kSp = 7;
#elif defined(__aarch64__)
  constexpr unsigned kIp = 32, kSp = 31;
#endif
  SamplerOptions options = FaultOptions();
  options.fields |= kSampleRegsUser | kSampleRegsIntr;
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  testing::FreshPages memory(50);
  REQUIRE(sampler->Start().ok());
  memory.Touch(0, 50);
  REQUIRE(sampler->Stop().ok());
  size_t samples = 0;
  testing::ForEachSample(*sampler, [&](const Sample& sample, const SamplerRecord&) {
    ++samples;
    CHECK(sample.user_stack().bytes.empty());
    for (const Registers& registers : {sample.user_registers(), sample.interrupt_registers()}) {
      CHECK(registers.abi == 2);
      CHECK(registers[kIp] == sample.ip());
      const uint64_t here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
      CHECK(here - registers[kSp].value_or(0) + (1 << 20) < (2 << 20));
    }
  });
  CHECK(samples >= 50);
}

TEST_CASE("what would be without effect is refused", "[fields]") {
  SamplerOptions options = FaultOptions();
  options.fields |= kSampleAux;
  CHECK(absl::IsInvalidArgument(Sampler::Open(options).status()));
  for (const size_t bytes : {(size_t{1} << 63) + 1, ~size_t{0}, size_t{1} << 62}) {
    CHECK(absl::IsInvalidArgument(Sampler::Open(FaultOptions(bytes)).status()));
  }
  for (const char* const event : {"page-faults:ppp", "task-clock:p", "page-faults:uP"}) {
    options = FaultOptions();
    options.events[0].event = event;
    const absl::Status status = Sampler::Open(options).status();
    INFO(event << ": " << status);
    CHECK((event[std::string_view(event).size() - 1] == 'P' || absl::IsInvalidArgument(status)));
  }
}

}  // namespace
}  // namespace perfkit
