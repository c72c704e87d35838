// The kernel's frames of samples that are written by hand.
#include "perfkit/kernel_frames.h"

#include <array>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/support/record_builder.h"

namespace perfkit {
namespace {

constexpr AttrBits kChained{.sample_type = kSampleIp | kSampleTid | kSampleCallchain};
constexpr AttrBits kUnchained{.sample_type = kSampleIp | kSampleTid};
constexpr uint64_t kOfKernel = -uint64_t{128}, kOfUser = -uint64_t{512}, kEntry = 0xffff'8000'0000'0000;

struct Found {
  std::vector<uint64_t> pcs, code;
  bool has_chain = false;
  bool operator==(const Found&) const = default;
};

Found FramesOf(const AttrBits& bits, uint64_t ip, CpuMode mode, std::vector<uint64_t> chain) {
  testing::SampleValues values{.ip = ip, .misc = static_cast<uint16_t>(mode)};
  values.chain = std::move(chain);
  const std::string bytes = testing::BuildSample(bits, values);
  const SampleLayout layout(bits);
  const auto sample = Sample::Parse(testing::AsRecord(bytes), layout);
  REQUIRE(sample.has_value());
  const KernelFrames kernel(*sample);
  Found found{.has_chain = kernel.has_chain()};
  CHECK(kernel.empty() == (kernel.size() == 0));
  for (size_t i = 0; i < kernel.size(); ++i) {
    CHECK(kernel[i].is_kernel);
    CHECK(kernel[i].is_return_address == (i != 0));
    found.pcs.push_back(kernel[i].pc);
    found.code.push_back(kernel[i].code());
  }
  std::array<StackFrame, 2> copied;
  const size_t count = kernel.CopyTo(copied);
  CHECK(count == std::min<size_t>(kernel.size(), 2));
  for (size_t i = 0; i < count; ++i) CHECK(copied[i] == kernel[i]);
  return found;
}

TEST_CASE("the kernel's frames are the sampled pc and its callers in the kernel, without the user's",
          "[kernel_frames]") {
  CHECK(FramesOf(kChained, kEntry + 9, CpuMode::kKernel,
                 {kOfKernel, kEntry + 9, kEntry + 7, kEntry + 5, kOfUser, 1, 2}) ==
        Found{{kEntry + 9, kEntry + 7, kEntry + 5}, {kEntry + 9, kEntry + 6, kEntry + 4}, true});
  CHECK(FramesOf(kChained, kEntry + 9, CpuMode::kKernel, {kOfKernel, kEntry + 9}) ==
        Found{{kEntry + 9}, {kEntry + 9}, true});
}

TEST_CASE("a sample in the kernel without a chain has its own pc alone", "[kernel_frames]") {
  const Found alone{{kEntry}, {kEntry}, false};
  CHECK(FramesOf(kUnchained, kEntry, CpuMode::kKernel, {}) == alone);
  CHECK(FramesOf(kChained, kEntry, CpuMode::kKernel, {}) == alone);
  CHECK(FramesOf(kChained, kEntry, CpuMode::kKernel, {kOfKernel}) == alone);
  CHECK(FramesOf(kChained, kEntry, CpuMode::kKernel, {kOfUser, 1, 2}) == alone);
}

TEST_CASE("a sample outside of the kernel has no frame there", "[kernel_frames]") {
  for (const CpuMode mode : {CpuMode::kUser, CpuMode::kHypervisor, CpuMode::kGuestKernel, CpuMode::kUnknown}) {
    CHECK(FramesOf(kChained, 1, mode, {}) == Found{});
    CHECK(FramesOf(kChained, 1, mode, {kOfUser, 1, 2}) == Found{});
    CHECK(FramesOf(kChained, 1, mode, {kOfKernel, kEntry, kEntry}) == Found{});
  }
  CHECK(KernelFrames().empty());
}

// The kernel begins the chain where the interrupt came, some instructions after the event.
TEST_CASE("the pc of an event without skid is the first, in place of where its chain begins", "[kernel_frames]") {
  CHECK(FramesOf(kChained, kEntry + 8, CpuMode::kKernel, {kOfKernel, kEntry + 9, kEntry + 7}).pcs ==
        std::vector<uint64_t>{kEntry + 8, kEntry + 7});
}

TEST_CASE("whatever a chain holds, the kernel's frames are those of its part", "[kernel_frames][corrupt]") {
  std::mt19937_64 random(7);
  constexpr std::array<uint64_t, 7> kMarks{kOfKernel,    kOfUser,        -uint64_t{32},  -uint64_t{2048},
                                           -uint64_t{1}, -uint64_t{640}, -uint64_t{4095}};
  size_t chains = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<uint64_t> words;
    for (size_t left = random() % 12; left > 0; --left) {
      words.push_back(random() % 3 == 0 ? kMarks[random() % kMarks.size()] : random() >> random() % 60);
    }
    const CallChain chain(Words(reinterpret_cast<const std::byte*>(words.data()), words.size()));
    const Words part = chain.part(ChainContext::kKernel);
    std::vector<uint64_t> expected{part.begin(), part.end()};
    chains += expected.empty() ? 0 : 1;
    if (expected.empty()) expected.push_back(0);
    expected[0] = kEntry;
    CHECK(FramesOf(kChained, kEntry, CpuMode::kKernel, words).pcs == expected);
    CHECK(FramesOf(kChained, kEntry, CpuMode::kUser, words) == Found{});
  }
  CHECK(chains > 1000);
}

}  // namespace
}  // namespace perfkit
