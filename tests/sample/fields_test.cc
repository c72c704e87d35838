// Fields and options: supported ones have values, ones without an effect are refused.
#include <fcntl.h>
#include <unistd.h>

#include <optional>

#include "tests/sample/support.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

using testing::FaultOptions;

#if defined(__x86_64__)
constexpr unsigned kIp = 8, kSp = 7;
#elif defined(__aarch64__)
constexpr unsigned kIp = 32, kSp = 31;
#endif

TEST_CASE("samples have registers without a stack", "[fields]") {
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

TEST_CASE("of a sample in the kernel, the registers at the interrupt are the kernel's", "[fields][root]") {
  constexpr size_t kReads = 20;
  SamplerOptions options = FaultOptions();
  options.events[0].event = "page-faults";
  options.fields |= kSampleAddr | kSampleRegsUser | kSampleRegsIntr;
  auto sampler = Sampler::Open(options);
  if (absl::IsPermissionDenied(sampler.status())) SKIP_TEST("this process may not watch the kernel");
  REQUIRE(sampler.ok());
  if (sampler->user_only(0)) SKIP_TEST("this process may not watch the kernel");
  testing::FreshPages memory(kReads);
  const int zeros = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  REQUIRE(sampler->Start().ok());
  for (size_t i = 0; i < kReads; ++i) REQUIRE(read(zeros, memory.data() + i * 4096, 1) == 1);
  REQUIRE(sampler->Stop().ok());
  close(zeros);
  size_t samples = 0;
  testing::ForEachSample(*sampler, [&](const Sample& sample, const SamplerRecord&) {
    if (*sample.address() - reinterpret_cast<uint64_t>(memory.data()) >= kReads * 4096) return;
    ++samples;
    const auto is_kernel = [](std::optional<uint64_t> address) { return static_cast<int64_t>(*address) < 0; };
    CHECK(sample.interrupt_registers()[kIp] == sample.ip());
    CHECK(is_kernel(sample.interrupt_registers()[kIp]));
    CHECK(is_kernel(sample.interrupt_registers()[kSp]));
    CHECK_FALSE(is_kernel(sample.user_registers()[kIp]));
    CHECK_FALSE(is_kernel(sample.user_registers()[kSp]));
  });
  CHECK(samples == kReads);
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
