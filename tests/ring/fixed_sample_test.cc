// A layout known at compile time gives the same results as at run time.
#include <catch2/catch.hpp>
#include <random>

#include "tests/ring/sample_values.h"

namespace perfkit {
namespace {

using testing::AsRecord;

constexpr AttrBits kSmall{.sample_type = kSampleIp | kSampleTid | kSampleTime | kSamplePeriod};
constexpr AttrBits kChain{.sample_type = kSmall.sample_type | kSampleCallchain | kSampleCpu};
constexpr AttrBits kStack{.sample_type = kSmall.sample_type | kSampleRegsUser | kSampleStackUser,
                          .regs_user = 0xff0fff};
constexpr AttrBits kTracepoint{.sample_type = kSampleIdentifier | kSampleTime | kSampleRaw | kSampleRead,
                               .read_format = kReadGroup | kReadId};
constexpr AttrBits kEverything{.sample_type = (1 << 25) - 1,
                               .read_format = 31,
                               .branch_sample_type = kBranchHwIndex | kBranchCounters,
                               .regs_user = 0xff0fff,
                               .regs_intr = 7};

// Parses a sample by both, complete, truncated and damaged: they agree on whether it is a sample, and on its fields.
template <AttrBits kBits>
void CompareBoth() {
  const SampleLayout layout(kBits);
  const std::string whole = testing::BuildSample(kBits);
  const auto fixed = FixedSample<kBits>::Parse(AsRecord(whole));
  REQUIRE(fixed);
  CHECK(testing::Describe(*fixed) == testing::Expected(kBits, {}));
  std::mt19937_64 random(3);
  for (int round = 0; round < 3000; ++round) {
    std::string changed = whole.substr(0, 8 + random() % (whole.size() / 8) * 8);
    if (round % 2 == 0) changed = whole;
    changed[8 + random() % (whole.size() - 8) % std::max<size_t>(changed.size() - 8, 1)] ^=
        static_cast<char>(1 << random() % 8);
    const auto slow = Sample::Parse(AsRecord(changed), layout);
    const auto fast = FixedSample<kBits>::Parse(AsRecord(changed));
    REQUIRE(slow.has_value() == fast.has_value());
    if (slow) CHECK(testing::Describe(*slow) == testing::Describe(*fast));
  }
}

TEST_CASE("fixed layouts say what run-time layouts say", "[sample][fixed]") {
  CompareBoth<kSmall>();
  CompareBoth<kChain>();
  CompareBoth<kStack>();
  CompareBoth<kTracepoint>();
  CompareBoth<kEverything>();
}

TEST_CASE("a fixed layout costs a pointer less", "[sample][fixed]") {
  CHECK(sizeof(FixedSample<kSmall>) < sizeof(Sample));
}

}  // namespace
}  // namespace perfkit
