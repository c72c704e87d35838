// The options of live stacks, the layout of their records, and the end of a sampler.
#include <sys/wait.h>

#include "src/sample/live_record.h"
#include "src/sys/perf_abi.h"
#include "tests/sample/live_support.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/record_builder.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

using sample::LiveRecord;
using testing::DrainInto;
using testing::FakeKernel;
using testing::FlatWalker;
using testing::LiveOptions;
using testing::LiveTally;
using testing::RecordBuilder;

void CheckRefused(const SamplerOptions& options, Target target, absl::StatusCode code, const char* words) {
  const absl::Status status = Sampler::Open(options, target).status();
  INFO(status.ToString());
  CHECK(status.code() == code);
  CHECK_THAT(std::string(status.message()), Catch::Contains(words));
}

TEST_CASE("live stacks of what is not this process's own threads are refused", "[live][open]") {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  const char* const words = "only threads of this process can walk their stacks";
  CheckRefused(LiveOptions(1000), Target::Process(1), kInvalid, words);
  CheckRefused(LiveOptions(1000), Target::Thread(1), kInvalid, words);
  CheckRefused(LiveOptions(1000), Target::Cpu(0), kInvalid, words);
  CheckRefused(LiveOptions(1000), Target::System(), kInvalid, words);
  CHECK(Sampler::Open(LiveOptions(1000), Target::Thread(gettid())).ok());
  CHECK(Sampler::Open(LiveOptions(1000)).ok());
}

TEST_CASE("live stacks without who walks them, too deep, or of rings that overwrite are refused", "[live][open]") {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  SamplerOptions options = LiveOptions(1000, nullptr);
  CheckRefused(options, Target::ThisThread(), kInvalid, "perfkit::LiveStacks");
  options = LiveOptions(
      1000, +[]() -> std::unique_ptr<unwind::LiveWalker> { return nullptr; });
  CheckRefused(options, Target::ThisThread(), kInvalid, "no code that walks");
  options = LiveOptions(1000);
  options.stack.depth = LiveRecord::kMaxFrames + 1;
  CheckRefused(options, Target::ThisThread(), kInvalid, "at most 7900");
  options.stack.depth = LiveRecord::kMaxFrames;
  CHECK(Sampler::Open(options).ok());
  options.stack.depth = options.stack.outer = 20;
  CheckRefused(options, Target::ThisThread(), kInvalid, "20 of them of the outer end");
  options = LiveOptions(1000);
  options.mode = RingMode::kOverwrite;
  CheckRefused(options, Target::ThisThread(), kInvalid, "kStream");
  options = LiveOptions(1000);
  options.stack.depth = 2000;
  options.memory_bytes = 64 << 10;
  CheckRefused(options, Target::AllThreads(), absl::StatusCode::kResourceExhausted, "memory_bytes");
}

class BrokenWalker : public FlatWalker {
 public:
  absl::Status Maintain() override { return absl::DataLossError("no tables"); }
  static std::unique_ptr<unwind::LiveWalker> Make() { return std::make_unique<BrokenWalker>(); }
};

TEST_CASE("what keeps a walker from working is told by Open", "[live][open]") {
  CheckRefused(LiveOptions(1000, BrokenWalker::Make), Target::ThisThread(), absl::StatusCode::kDataLoss, "no tables");
}

TEST_CASE("whatever call fails, Open of live stacks leaves nothing open", "[live][open]") {
  const testing::SweepTally tally = testing::SweepFaults([] {
    auto sampler = Sampler::Open(LiveOptions(1000));
    if (!sampler.ok()) return sampler.status();
    return sampler->Start();
  });
  CHECK(tally.refused > 0);
}

TEST_CASE("a sampler's 17th fellow with live stacks is refused", "[live][open]") {
  std::vector<Sampler> samplers;
  for (int i = 0; i < 16; ++i) {
    auto sampler = Sampler::Open(LiveOptions(1000));
    REQUIRE(sampler.ok());
    samplers.push_back(*std::move(sampler));
  }
  CheckRefused(LiveOptions(1000), Target::ThisThread(), absl::StatusCode::kResourceExhausted, "16 samplers");
  samplers.pop_back();
  CHECK(Sampler::Open(LiveOptions(1000)).ok());
}

// The trailer of these layouts has all that a trailer can have.
TEST_CASE("a stack's record is a deferred chain, with the trailer of its layout", "[live][law]") {
  SamplerOptions options = LiveOptions(1000);
  // Not in step with the first: of two at one moment one has no signal.
  options.events.push_back({.event = "task-clock", .rate = Period{730'000}});
  options.fields = kSampleCpu | kSampleId | kSampleStreamId;
  auto sampler = Sampler::Open(options, Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  testing::Spin(100'000'000);
  REQUIRE(sampler->Stop().ok());
  std::map<uint32_t, std::vector<uint64_t>> ids;
  std::vector<uint64_t> cookies;
  uint64_t stacks = 0;
  sampler->Drain([&](const SamplerRecord& record) {
    if (const auto sample = Sample::Parse(record, sampler->layout())) ids[record.event].push_back(*sample->id());
    const auto stack = LiveStack::Parse(record, sampler->layout());
    const auto deferred = CallchainDeferredRecord::Parse(record, sampler->layout());
    REQUIRE(stack.has_value() == deferred.has_value());
    if (!stack) return;
    ++stacks;
    CHECK(record.event < 2);
    CHECK(deferred->chain.part(ChainContext::kUser).size() == stack->size());
    CHECK(deferred->chain.part(ChainContext::kUser)[0] == stack->pcs[0]);
    CHECK(deferred->who.tid == static_cast<uint32_t>(gettid()));
    CHECK(deferred->who.time_ns == stack->time_ns);
    CHECK(deferred->who.cpu.value_or(~0u) < 4096);
    CHECK(deferred->who.id == deferred->who.identifier);
    ids[2 + record.event].push_back(*deferred->who.id);
    cookies.push_back(deferred->cookie);
  });
  CHECK(stacks > 20);
  std::sort(cookies.begin(), cookies.end());
  CHECK(std::adjacent_find(cookies.begin(), cookies.end()) == cookies.end());
  // The id is one of its event's.
  for (uint32_t event = 0; event < 2; ++event) {
    REQUIRE_FALSE(ids[2 + event].empty());
    for (const uint64_t id : ids[2 + event]) {
      CHECK(id != 0);
      CHECK(std::count(ids[1 - event].begin(), ids[1 - event].end(), id) == 0);
    }
  }
}

TEST_CASE("a stack's frames keep their marks, and a caller gets as many as it asks for", "[live]") {
  AttrBits bits;
  bits.sample_type = kSampleTid | kSampleTime | kSampleIdentifier;
  bits.sample_id_all = true;
  const SampleLayout layout(bits);
  RecordBuilder builder;
  constexpr size_t kFrames = 70;
  builder.U64(5).U64(kFrames + 1).U64(-512);
  for (size_t i = 0; i < kFrames; ++i) builder.U64(1000 + i);
  builder.U64(LiveRecord::State(static_cast<uint8_t>(StackEnd::kLimit), 3, 0x12'3456, kFrames));
  for (size_t word = 0; word < LiveRecord::MarkWords(kFrames); ++word) builder.U64(0xe4e4'e4e4'e4e4'e4e4);  // 0 1 2 3
  builder.U64(uint64_t{8} << 32 | 7).U64(99).U64(42);
  const std::string text = builder.Finish(RecordType::kCallchainDeferred);
  const Bytes bytes = std::as_bytes(std::span(text));
  LinearReader reader(bytes);
  RawRecord record;
  REQUIRE(reader.Next(record));
  const auto stack = LiveStack::Parse(record, layout);
  REQUIRE(stack.has_value());
  CHECK(stack->pid == 7);
  CHECK(stack->tid == 8);
  CHECK(stack->time_ns == 99);
  CHECK(stack->end == StackEnd::kLimit);
  CHECK(stack->guesses == 3);
  CHECK(stack->omitted == 0x12'3456);
  CHECK(stack->outer == kFrames);
  std::array<StackFrame, 100> frames;
  CHECK(stack->CopyTo(frames) == kFrames);
  for (size_t i = 0; i < kFrames; ++i) {
    CHECK(frames[i] == StackFrame{1000 + i, (i & 1) != 0, (i & 2) != 0});
  }
  CHECK(stack->CopyTo(std::span(frames).first(3)) == 3);
  // Cut short anywhere, it is none, and nothing after it is read.
  for (uint16_t size = 8; size < record.size; size += 8) {
    const std::vector<std::byte> part(bytes.begin(), bytes.begin() + size);
    CHECK_FALSE(LiveStack::Parse({record.type, record.misc, size, part.data()}, layout).has_value());
  }
}

TEST_CASE("what is no live stack is none", "[live]") {
  const SampleLayout layout;
  const auto refused = [&](RecordBuilder builder, RecordType type = RecordType::kCallchainDeferred) {
    const std::string text = builder.Finish(type);
    LinearReader reader(std::as_bytes(std::span(text)));
    RawRecord record;
    return reader.Next(record) && !LiveStack::Parse(record, layout).has_value();
  };
  CHECK_FALSE(refused(RecordBuilder().U64(1).U64(1).U64(-512).U64(0)));
  CHECK(refused(RecordBuilder().U64(1).U64(1).U64(-512).U64(0), RecordType::kComm));
  CHECK(refused(RecordBuilder().U64(1).U64(1).U64(-512).U64(200)));  // no such end
  CHECK(refused(RecordBuilder().U64(1).U64(1).U64(-512).U64(LiveRecord::State(0, 0, 1, 1))));  // more outer than all
  CHECK(refused(RecordBuilder().U64(1).U64(0).U64(-512).U64(0)));
  CHECK(refused(RecordBuilder().U64(1).U64(1).U64(-128).U64(0)));
  for (const uint64_t count : {uint64_t{3}, uint64_t{1} << 40, ~uint64_t{0}}) {
    CHECK(refused(RecordBuilder().U64(1).U64(count).U64(-512).U64(0)));
  }
}

// Two kinds of stacks in one program: each sampler can be started and stopped independently.
TEST_CASE("live stacks and dumped ones can take turns", "[live][law]") {
  SamplerOptions dump_options = LiveOptions(1000);
  dump_options.stack = CallStack::UserDump(8192);
  auto live = Sampler::Open(LiveOptions(1000));
  auto dump = Sampler::Open(dump_options);
  REQUIRE(live.ok());
  REQUIRE(dump.ok());
  LiveTally lives, dumps;
  for (int round = 0; round < 4; ++round) {
    Sampler& on = round % 2 == 0 ? *live : *dump;
    Sampler& off = round % 2 == 0 ? *dump : *live;
    const uint64_t before = lives.samples + dumps.samples, others = round % 2 == 0 ? dumps.samples : lives.samples;
    REQUIRE(on.Start().ok());
    testing::Spin(30'000'000);
    REQUIRE(on.Stop().ok());
    DrainInto(*live, lives);
    DrainInto(*dump, dumps);
    CHECK(lives.samples + dumps.samples > before);
    CHECK((round % 2 == 0 ? dumps.samples : lives.samples) == others);
    CHECK(off.stats().events[0].delivered == others);
  }
  CHECK(lives.stacks > 0);
  CHECK(dumps.stacks == 0);
  testing::CheckStackAccounting(*live);
}

TEST_CASE("threads with rings of the kernel's own have live stacks, too", "[live][law]") {
  testing::Spinners spinners(3);
  SamplerOptions options = LiveOptions(1000);
  options.rings = SamplerOptions::Rings::kPerThread;
  options.side_band = true;
  auto sampler = Sampler::Open(options, Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  LiveTally tally;
  testing::DrainFor(*sampler, tally, 100'000'000);
  std::thread([] { testing::Spin(20'000'000); }).join();
  testing::DrainUntil(*sampler, tally, 100'000'000, [&] { return tally.stacks > 50 && tally.last.size() >= 3; });
  REQUIRE(sampler->Stop().ok());
  spinners.Stop();
  testing::DrainRest(*sampler, tally);
  testing::CheckStackAccounting(*sampler);
}

TEST_CASE("the rate of a sampler with live stacks can be changed", "[live][law]") {
  auto sampler = Sampler::Open(LiveOptions(100), Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  LiveTally tally;
  testing::Spin(30'000'000);
  DrainInto(*sampler, tally);
  REQUIRE(sampler->SetRate(0, Frequency{5000}).ok());
  DrainInto(*sampler, tally);  // reaches those who have inherited the event
  const uint64_t before = tally.stacks;
  testing::Spin(100'000'000);
  REQUIRE(sampler->Stop().ok());
  testing::DrainRest(*sampler, tally);
  CHECK(tally.stacks > before + 50);
  testing::CheckStackAccounting(*sampler);
}

TEST_CASE("a group's leader can signal", "[live][law]") {
  SamplerOptions options = LiveOptions(1000);
  options.events[0].followers = {"page-faults"};
  auto sampler = Sampler::Open(options);
  INFO(sampler.status().ToString());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  testing::Spin(50'000'000);
  REQUIRE(sampler->Stop().ok());
  LiveTally tally;
  DrainInto(*sampler, tally);
  CHECK(tally.stacks > 0);
  testing::CheckStackAccounting(*sampler);
}

TEST_CASE("a sampler that may cost next to nothing gives live stacks up, and the accounting balances", "[live][law]") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer's drain costs more than any budget");
  SamplerOptions options = LiveOptions(testing::Bearable(10'000));
  options.cpu_budget = 0.002;
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  LiveTally tally;
  const auto is_given_up = [&] {
    const SamplerStats stats = sampler->stats();
    return stats.events[0].stacks.given_up > 0 && stats.events[0].stacks.delivered > 0;
  };
  while (!is_given_up()) {
    testing::Spin(10'000'000);
    DrainInto(*sampler, tally);
  }
  REQUIRE(sampler->Stop().ok());
  testing::DrainRest(*sampler, tally);
  testing::CheckStackAccounting(*sampler);
  bool stack = false, bytes = false;
  for (const SamplerDecision& decision : sampler->stats().decisions) {
    stack = stack || (decision.what == SamplerDecision::What::kStack && decision.to == 0);
    bytes = bytes || decision.what == SamplerDecision::What::kStackBytes;
  }
  CHECK(stack);
  CHECK(bytes);
}

}  // namespace
}  // namespace perfkit
