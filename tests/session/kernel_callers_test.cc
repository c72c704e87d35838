// The kernel's callers in profiles, whichever way the user's stack is taken: records that are written by hand.
#include <sys/mman.h>

#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/sample/live_record.h"
#include "src/session/aggregator.h"
#include "src/session/stack_hooks.h"
#include "src/unwind/machine.h"
#include "tests/support/record_builder.h"

namespace perfkit::session {
namespace {

using perfkit::testing::AddTrailer;
using perfkit::testing::AsRecord;
using perfkit::testing::BuildSample;
using perfkit::testing::RecordBuilder;
using perfkit::testing::SampleValues;
using sample::LiveRecord;
using Kind = CallStack::Kind;

constexpr uint32_t kProcess = 4711;
constexpr uint64_t kOfKernel = -uint64_t{128}, kOfUser = -uint64_t{512}, kCode = 0xffff'8000'0000'0000;
constexpr unsigned kPcBit = unwind::ThisMachine::kPerf[unwind::ThisMachine::kPc];
constexpr uint64_t kUserPc = 1000 + kPcBit;  // as BuildSample writes it
const std::vector<uint64_t> kUserPcs{kUserPc, 0x2001, 0x3001};

// Finds the same stack for each sample.
class SameStack final : public StackUnwinder {
 public:
  absl::Status AddProcess(uint32_t) override { return absl::OkStatus(); }
  void Add(const RawRecord&, const SampleLayout&) override {}
  UnwoundStack Unwind(const Sample&, std::span<StackFrame> frames) override {
    for (size_t i = 0; i < kUserPcs.size(); ++i) frames[i] = {.pc = kUserPcs[i], .is_return_address = i != 0};
    return {.frames = static_cast<uint32_t>(kUserPcs.size()), .end = StackEnd::kRoot};
  }
  UnwoundStack UnwindBlocked(const BlockedStack&, std::span<StackFrame>) override { return {}; }
};

// What a profile has of samples with this chain of the kernel, whose user's stack is kUserPcs.
class Chained {
 public:
  explicit Chained(Kind kind, AggregatorOptions options = {})
      : kind_(kind), aggregator_({{.name = "cpu-clock"}}, OptionsOf(kind, std::move(options))) {
    RecordBuilder out;
    out.U32(kProcess).U32(kProcess).U64(0).U64(0x10000).U64(0).U32(8).U32(1).U64(4711).U64(0);
    out.U32(PROT_EXEC | PROT_READ).U32(MAP_PRIVATE).Text("/no/such/file");
    AddTrailer(out, bits_, {.time = 1, .pid = kProcess, .tid = kProcess});
    Add(out.Finish(RecordType::kMmap2, 2), SamplerRecord::kNoEvent);
  }

  void AddInKernel(uint64_t ip, std::vector<uint64_t> chain, bool with_stack = true) {
    if (kind_ == Kind::kFramePointers && with_stack) {
      chain.push_back(kOfUser);
      chain.insert(chain.end(), kUserPcs.begin(), kUserPcs.end());
    }
    SampleValues values{.ip = ip, .time = time_ns_++, .pid = kProcess, .tid = kProcess, .misc = 1};
    values.chain = std::move(chain);
    Add(BuildSample(bits_, values), 0);
    if (kind_ == Kind::kLive && with_stack) AddLiveStack();
  }
  Profile Make(bool is_last = true) {
    Profile profile = aggregator_.MakeProfile(time_ns_, is_last, {});
    CHECK(profile.Check() == absl::OkStatus());
    return profile;
  }

 private:
  static AggregatorOptions OptionsOf(Kind kind, AggregatorOptions options) {
    options.stacks = kind;
    options.pid = kProcess;
    if (kind == Kind::kUserDump) options.unwinder = std::make_unique<SameStack>();
    return options;
  }
  void Add(const std::string& bytes, uint32_t event) {
    SamplerRecord record{AsRecord(bytes), event};
    record.weight = 1;
    aggregator_.Add(record, layout_);
  }
  void AddLiveStack() {
    RecordBuilder out;
    out.U64(0).U64(kUserPcs.size() + 1).U64(LiveRecord::kUserContext).Words64(kUserPcs);
    out.U64(LiveRecord::State(static_cast<uint8_t>(StackEnd::kRoot), 0)).U64(0b0101'00);  // return addresses
    AddTrailer(out, bits_, {.time = time_ns_++, .pid = kProcess, .tid = kProcess});
    Add(out.Finish(static_cast<uint32_t>(RecordType::kCallchainDeferred), LiveRecord::kMisc), 0);
  }

  const Kind kind_;
  const AttrBits bits_{.sample_type = kSampleIp | kSampleTid | kSampleTime | kSampleCallchain | kSampleRegsUser,
                       .regs_user = uint64_t{1} << kPcBit,
                       .sample_id_all = true};
  const SampleLayout layout_{bits_};
  Aggregator aggregator_;
  uint64_t time_ns_ = 10;
};

// Innermost first. Checks that each is the kernel's or not, by its address.
std::vector<uint64_t> AddressesOf(const Profile& profile, uint32_t stack) {
  std::vector<uint64_t> found;
  bool was_user = false;
  for (; stack != ProfileStack::kRoot; stack = profile.stacks[stack].parent) {
    const ProfileLocation& location = profile.locations[profile.stacks[stack].location];
    CHECK(location.kernel == (location.address >> 63 != 0));
    CHECK_FALSE((was_user && location.kernel));
    was_user = !location.kernel;
    found.push_back(location.address);
  }
  return found;
}

StackQuality WholeOf(Kind kind) { return kind == Kind::kFramePointers ? StackQuality::kPart : StackQuality::kWhole; }

const std::vector<uint64_t> kUserCode{kUserPc, 0x2000, 0x3000};

TEST_CASE("the kernel's callers stand between the sampled code and the user's", "[kernel_callers]") {
  const Kind kind = GENERATE(Kind::kFramePointers, Kind::kUserDump, Kind::kLive);
  Chained chained(kind);
  chained.AddInKernel(kCode + 0x30, {kOfKernel, kCode + 0x30, kCode + 0x21, kCode + 0x11});
  chained.AddInKernel(kCode + 0x40, {kOfKernel, kCode + 0x40});
  chained.AddInKernel(kCode + 0x50, {});
  const Profile profile = chained.Make();
  REQUIRE(profile.samples.size() == 3);
  const auto with_user = [](std::vector<uint64_t> kernel) {
    kernel.insert(kernel.end(), kUserCode.begin(), kUserCode.end());
    return kernel;
  };
  CHECK(AddressesOf(profile, profile.samples[0].stack) == with_user({kCode + 0x30, kCode + 0x20, kCode + 0x10}));
  CHECK(AddressesOf(profile, profile.samples[1].stack) == with_user({kCode + 0x40}));
  CHECK(AddressesOf(profile, profile.samples[2].stack) == with_user({kCode + 0x50}));
  for (const ProfileSample& sample : profile.samples) CHECK(sample.quality == WholeOf(kind));
}

TEST_CASE("a chain that the kernel has cut makes a part of a whole stack", "[kernel_callers]") {
  const Kind kind = GENERATE(Kind::kUserDump, Kind::kLive);
  Chained chained(kind, {.max_chain = 4});
  chained.AddInKernel(kCode + 0x30, {kOfKernel, kCode + 0x30, kCode + 0x21, kCode + 0x11});
  chained.AddInKernel(kCode + 0x40, {kOfKernel, kCode + 0x40, kCode + 0x31, kCode + 0x21, kCode + 0x11});
  const Profile profile = chained.Make();
  REQUIRE(profile.samples.size() == 2);
  CHECK(profile.samples[0].quality == StackQuality::kWhole);
  CHECK(profile.samples[1].quality == StackQuality::kPart);
}

TEST_CASE("without the user's stack, the kernel's callers are a part of it", "[kernel_callers]") {
  const Kind kind = GENERATE(Kind::kFramePointers, Kind::kLive, Kind::kNone);
  Chained chained(kind);
  chained.AddInKernel(kCode + 0x30, {kOfKernel, kCode + 0x30, kCode + 0x21}, false);
  chained.AddInKernel(kCode + 0x40, {kOfKernel, kCode + 0x40}, false);
  const Profile profile = chained.Make();
  REQUIRE(profile.samples.size() == 2);
  CHECK(AddressesOf(profile, profile.samples[0].stack) == std::vector<uint64_t>{kCode + 0x30, kCode + 0x20});
  CHECK(profile.samples[0].quality == StackQuality::kPart);
  CHECK(AddressesOf(profile, profile.samples[1].stack) == std::vector<uint64_t>{kCode + 0x40});
  CHECK(profile.samples[1].quality == StackQuality::kLeafOnly);
}

TEST_CASE("samples of one system call have callers of their own above one live stack", "[kernel_callers]") {
  Chained chained(Kind::kLive);
  chained.AddInKernel(kCode + 0x30, {kOfKernel, kCode + 0x30, kCode + 0x11}, false);
  chained.AddInKernel(kCode + 0x40, {kOfKernel, kCode + 0x40, kCode + 0x21});
  const Profile profile = chained.Make();
  REQUIRE(profile.samples.size() == 2);
  for (uint64_t i = 0; i < 2; ++i) {
    std::vector<uint64_t> expected{kCode + 0x30 + 0x10 * i, kCode + 0x10 + 0x10 * i};
    expected.insert(expected.end(), kUserCode.begin(), kUserCode.end());
    CHECK(AddressesOf(profile, profile.samples[i].stack) == expected);
    CHECK(profile.samples[i].quality == StackQuality::kWhole);
  }
}

TEST_CASE("a full table leaves the sampled code alone, and counts it", "[kernel_callers]") {
  const Kind kind = GENERATE(Kind::kFramePointers, Kind::kUserDump, Kind::kLive);
  Chained chained(kind, {.memory_bytes = 1 << 16});
  constexpr uint64_t kSamples = 2000;
  for (uint64_t i = 0; i < kSamples; ++i) {
    chained.AddInKernel(kCode + 0x30, {kOfKernel, kCode + 0x30, kCode + 0x1001 + 16 * (i % 50), kCode + 0x21 + 16 * i});
  }
  const Profile profile = chained.Make();
  uint64_t leaves = 0, all = 0;
  for (const ProfileSample& sample : profile.samples) {
    const size_t depth = AddressesOf(profile, sample.stack).size();
    CHECK((sample.quality == StackQuality::kLeafOnly) == (depth == 1));
    CHECK((depth == 1 || depth == 3 + kUserPcs.size()));
    leaves += depth == 1 ? sample.samples : 0;
    all += sample.samples;
  }
  CHECK(all == kSamples);
  CHECK(leaves > 0);
  CHECK(profile.accounting.stacks_forgotten == leaves);
}

TEST_CASE("whatever the kernel's chain holds, the user's frames are below it, each once", "[kernel_callers][corrupt]") {
  const Kind kind = GENERATE(Kind::kUserDump, Kind::kLive);
  std::mt19937_64 random(5);
  constexpr std::array<uint64_t, 6> kMarks{kOfKernel,      kOfUser,         -uint64_t{32},
                                           -uint64_t{640}, -uint64_t{2048}, -uint64_t{4095}};
  Chained chained(kind, {.max_chain = 127});
  std::vector<std::vector<uint64_t>> expected;
  for (int i = 0; i < 1000; ++i) {
    std::vector<uint64_t> words;
    if (random() % 4 != 0) words.push_back(kOfKernel);
    for (size_t left = random() % 40; left > 0; --left) {
      words.push_back(random() % 10 == 0 ? kMarks[random() % kMarks.size()] : kCode + random() % 0xffff);
    }
    const Words view(reinterpret_cast<const std::byte*>(words.data()), words.size());
    const Words part = CallChain(view).part(ChainContext::kKernel);
    std::vector<uint64_t> addresses{kCode + 0x30};
    for (size_t k = 1; k < part.size(); ++k) addresses.push_back(part[k] - 1);
    addresses.insert(addresses.end(), kUserCode.begin(), kUserCode.end());
    expected.push_back(std::move(addresses));
    chained.AddInKernel(kCode + 0x30, words);
  }
  const Profile profile = chained.Make();
  REQUIRE(profile.samples.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    std::vector<uint64_t> found;
    for (uint32_t stack = profile.samples[i].stack; stack != ProfileStack::kRoot;
         stack = profile.stacks[stack].parent) {
      found.push_back(profile.locations[profile.stacks[stack].location].address);
    }
    CHECK(found == expected[i]);
    CHECK(profile.samples[i].quality == StackQuality::kWhole);
  }
}

TEST_CASE("a sample that waits for its stack is cut once, however many profiles are made", "[kernel_callers]") {
  Chained chained(Kind::kLive, {.memory_bytes = 256});  // room for one stack
  chained.AddInKernel(kCode + 0x10, {kOfKernel, kCode + 0x10, kCode + 0x21, kCode + 0x31}, /*with_stack=*/false);
  for (const bool is_last : {false, false, true}) {
    const Profile profile = chained.Make(is_last);
    CHECK(profile.accounting.stacks_forgotten == 1);
    CHECK(profile.Total(0).samples == 1);
  }
}

}  // namespace
}  // namespace perfkit::session
