// Full dumps beside short ones: their number, their size and their accounting.
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/str_format.h"
#include "src/sample/plan.h"
#include "tests/sample/support.h"
#include "tests/support/raw_breakpoint.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

constexpr uint32_t kShort = 1024, kFull = 4096;

SamplerOptions WithFullDumps(SampledEvent event, uint32_t every) {
  SamplerOptions options;
  options.events = {std::move(event)};
  options.stack = CallStack::UserDump(kShort, {.every = every, .bytes = kFull});
  return options;
}

// Samples of a drain: the event's own, and the full ones. Each has the expected stack.
struct DumpCounts {
  uint64_t own = 0, full = 0;
  std::set<uint32_t> events, threads;
};
DumpCounts CountDumps(Sampler& sampler) {
  DumpCounts counts;
  testing::ForEachSample(sampler, [&](const Sample& sample, const SamplerRecord& record) {
    CHECK(sample.user_stack().reserved == (record.full_stack ? kFull : kShort));
    ++(record.full_stack ? counts.full : counts.own);
    counts.events.insert(record.event);
    counts.threads.insert(sample.task()->tid);
  });
  return counts;
}

__attribute__((noinline)) void Stopped(volatile int* count) { *count = *count + 1; }

TEST_CASE("a full dump comes with every Nth sample, and the accounting of both balances", "[full_dumps]") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer's runtime may hold the breakpoints");
  if (testing::RawCountOfWrites() == 0) SKIP_TEST("this virtual machine does not count breakpoints");
  const std::string breakpoint = absl::StrFormat("mem:0x%x:x:u", reinterpret_cast<uintptr_t>(&Stopped));
  auto sampler = Sampler::Open(WithFullDumps({.event = breakpoint}, 8));
  if (!sampler.ok()) SKIP_TEST(std::string(sampler.status().message()));
  REQUIRE(sampler->Start().ok());
  volatile int count = 0;
  for (int i = 0; i < 100; ++i) Stopped(&count);
  const DumpCounts counts = CountDumps(*sampler);
  CHECK((counts.own == 100 && counts.full == 100 / 8));
  CHECK(counts.events == std::set<uint32_t>{0});
  const SamplerStats stats = sampler->stats();
  REQUIRE(stats.events.size() == 1);
  REQUIRE(stats.full.size() == 1);
  CHECK((stats.events[0].delivered == counts.own && stats.full[0].delivered == counts.full));
  CHECK((stats.events[0].counted == 100 && stats.full[0].counted == 100));
  CHECK((stats.events[0].represented == 100 && stats.full[0].represented == 12 * 8));
  CHECK(absl::IsInvalidArgument(sampler->SetRate(1, Period{1})));

  // The kernel takes a sample or two more when a period is changed.
  REQUIRE(sampler->SetRate(0, Period{2}).ok());
  for (int i = 0; i < 320; ++i) Stopped(&count);
  REQUIRE(sampler->Stop().ok());
  const DumpCounts rarer = CountDumps(*sampler);
  CHECK((rarer.own >= 160 && rarer.own <= 163));
  CHECK((rarer.full >= 20 && rarer.full <= 23));
}

TEST_CASE("full dumps of a clock come from all threads, and stand for themselves", "[full_dumps][law]") {
  SamplerOptions options = WithFullDumps({.event = "task-clock:u", .rate = Period{200'000}}, 4);
  auto sampler = Sampler::Open(options, Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  DumpCounts all;
  for (int i = 0; i < 1000 && (all.full < 100 || all.threads.size() < 2); ++i) {
    std::thread other([] { testing::Spin(1'000'000); });
    testing::Spin(1'000'000);
    other.join();
    const DumpCounts now = CountDumps(*sampler);
    all.own += now.own;
    all.full += now.full;
    all.threads.insert(now.threads.begin(), now.threads.end());
  }
  REQUIRE(sampler->Stop().ok());
  const DumpCounts last = CountDumps(*sampler);
  all.own += last.own, all.full += last.full;
  CHECK(all.full >= 100);
  const SamplerStats stats = sampler->stats();
  const EventAccounting &own = stats.events[0], &full = stats.full[0];
  CHECK((own.delivered == all.own && full.delivered == all.full));
  CHECK((own.represented == all.own * 200'000 && full.represented == all.full * 800'000));
  for (const EventAccounting& accounting : {own, full}) {
    CHECK(accounting.represented + accounting.unsampled_ns >= accounting.counted);
    CHECK((accounting.malformed == 0 && accounting.duplicates <= accounting.delivered));
  }
}

// What event `event` would ask of the kernel.
sys::PerfEventAttr AttrOf(const sample::Plan& plan, size_t event, sample::SamplingLevel level) {
  return plan.EventRequest(event, 0, level).attr;
}

TEST_CASE("what is given up of dumps and samples is given up of the full ones, too", "[full_dumps]") {
  SamplerOptions options = WithFullDumps({.event = "cpu-clock:u", .rate = Frequency{1000}}, 16);
  options.events.push_back({.event = "task-clock:u", .rate = Period{1'000'000}});
  auto plan = sample::Plan::Make(options, Target::ThisThread());
  REQUIRE(plan.ok());
  REQUIRE(plan->events().size() == 4);
  CHECK(plan->asked() == 2);
  const sample::SamplingLevel whole = plan->FullLevel();
  CHECK((AttrOf(*plan, 0, whole).sample_stack_user == kShort && AttrOf(*plan, 2, whole).sample_stack_user == kFull));
  CHECK(AttrOf(*plan, 0, whole).sample_period_or_freq == 1000);
  CHECK(AttrOf(*plan, 2, whole).sample_period_or_freq == 1000 / 16);
  CHECK(AttrOf(*plan, 3, whole).sample_period_or_freq == 16'000'000);
  CHECK(AttrOf(*plan, 0, whole).sample_type == AttrOf(*plan, 2, whole).sample_type);
  CHECK(AttrOf(*plan, 3, {.stack = 512, .slower = 4}).sample_stack_user == kFull / 2);
  CHECK(AttrOf(*plan, 3, {.stack = 512, .slower = 4}).sample_period_or_freq == 64'000'000);
  CHECK(AttrOf(*plan, 3, {.stack = 0, .slower = 1}).sample_stack_user == 0);
  CHECK(plan->SampleCostNs(2, whole) > plan->SampleCostNs(0, whole));
  CHECK(plan->LargestRecord() >= kFull + 8192);
  plan->SetRate(1, Period{~uint64_t{0} / 4});
  CHECK(AttrOf(*plan, 3, whole).sample_period_or_freq == ~uint64_t{0} / 2);
}

TEST_CASE("dumps get longer and shorter while they are taken, and no sample is lost for it", "[full_dumps]") {
  SamplerOptions options = testing::FaultOptions();
  options.stack = CallStack::UserDump(1024);
  auto sampler = Sampler::Open(options, Target::AllThreads());
  REQUIRE(sampler.ok());
  testing::FreshPages memory(50);
  std::map<uint64_t, uint64_t> samples;  // by the bytes of their dumps
  const auto drain = [&] {
    testing::ForEachSample(*sampler, [&](const Sample& sample, const SamplerRecord&) {
      const uint64_t at = *sample.address() - reinterpret_cast<uintptr_t>(memory.data());
      if (at < memory.pages() * 4096) ++samples[sample.user_stack().reserved];
    });
  };
  const auto touch = [&] {
    memory.Forget();
    memory.Touch(0, memory.pages());
  };
  REQUIRE(sampler->SetStackBytes(2048).ok());  // for later
  REQUIRE(sampler->Start().ok());
  touch();
  drain();  // and here it comes
  touch();
  REQUIRE(sampler->SetStackBytes(512).ok());
  REQUIRE(sampler->SetStackBytes(4096).ok());  // the last word counts
  touch();
  drain();
  touch();
  REQUIRE(sampler->SetStackBytes(4096).ok());
  drain();
  REQUIRE(sampler->Stop().ok());
  drain();
  CHECK(samples == std::map<uint64_t, uint64_t>{{1024, 50}, {2048, 100}, {4096, 50}});
  const SamplerStats stats = sampler->stats();
  testing::CheckAccountingBalances(stats);
  CHECK((stats.decisions.empty() && stats.decisions_refused == 0));
  for (const uint32_t bytes : {0u, 12u, 1u << 16}) CHECK(absl::IsInvalidArgument(sampler->SetStackBytes(bytes)));

  auto full = Sampler::Open(WithFullDumps({.event = "task-clock:u", .rate = Period{1'000'000}}, 4));
  REQUIRE(full.ok());
  CHECK(absl::IsInvalidArgument(full->SetStackBytes(kFull)));
  CHECK(full->SetStackBytes(kFull - 8).ok());
  CHECK(absl::IsFailedPrecondition(Sampler::Open(testing::FaultOptions())->SetStackBytes(1024)));
  options.mode = RingMode::kOverwrite;
  CHECK(absl::IsFailedPrecondition(Sampler::Open(options)->SetStackBytes(1024)));
}

TEST_CASE("full dumps that cannot be are refused with the reason", "[full_dumps]") {
  const auto refused = [](const SamplerOptions& options) {
    const auto sampler = Sampler::Open(options);
    CHECK(absl::IsInvalidArgument(sampler.status()));
    return std::string(sampler.status().message());
  };
  SamplerOptions options = WithFullDumps({.event = "page-faults:u"}, 4);
  CHECK_THAT(refused(options), Catch::Contains("page-faults") && Catch::Contains("the same stack"));
  options.events = {{.event = "task-clock:u", .rate = Period{1'000'000}}};
  for (const uint32_t bytes : {kShort, kShort + 4, 1u << 20}) {
    options.stack.full.bytes = bytes;
    CHECK_THAT(refused(options), Catch::Contains("multiple of 8") && Catch::Contains(std::to_string(bytes)));
  }
  options.stack = CallStack::FramePointers();
  options.stack.full.every = 4;
  CHECK_THAT(refused(options), Catch::Contains("UserDump"));
}

}  // namespace
}  // namespace perfkit
