// Records that are written by hand, added up.
#include "src/session/aggregator.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "src/sample/live_record.h"
#include "tests/session/soak.h"
#include "tests/support/record_builder.h"
#include "tests/support/work.h"

namespace perfkit::session {
namespace {

using perfkit::testing::AddTrailer;
using perfkit::testing::AsRecord;
using perfkit::testing::BuildSample;
using perfkit::testing::RecordBuilder;
using perfkit::testing::SampleValues;
using sample::LiveRecord;

constexpr uint32_t kPid = 4711;

AttrBits Bits(CallStack::Kind stacks) {
  AttrBits bits;
  bits.sample_type = kSampleIp | kSampleTid | kSampleTime;
  if (stacks == CallStack::Kind::kFramePointers) bits.sample_type |= kSampleCallchain;
  bits.sample_id_all = true;
  return bits;
}

// An aggregator of one event, and what is written to it.
struct Written {
  AttrBits bits;
  SampleLayout layout{bits};
  Aggregator aggregator;

  explicit Written(AggregatorOptions options, uint32_t pid = kPid)
      : bits(Bits(options.stacks)), aggregator({{.name = "page-faults"}}, [&] {
          options.pid = pid;
          return std::move(options);
        }()) {}

  void Add(const std::string& bytes, uint32_t event = SamplerRecord::kNoEvent, uint64_t weight = 0) {
    SamplerRecord record{AsRecord(bytes), event};
    record.weight = weight;
    aggregator.Add(record, layout);
  }
  void AddSample(uint32_t tid, uint64_t time_ns, uint64_t pc, uint64_t weight = 1, uint16_t misc = 2,
                 uint32_t pid = kPid) {
    Add(BuildSample(bits, {.ip = pc, .time = time_ns, .pid = pid, .tid = tid, .misc = misc}), 0, weight);
  }
  // Code of a file is mapped from address 0 on.
  void AddMap(uint64_t bytes) {
    RecordBuilder out;
    out.U32(kPid).U32(kPid).U64(0).U64(bytes).U64(0).U32(8).U32(1).U64(4711).U64(0);
    out.U32(PROT_EXEC | PROT_READ).U32(MAP_PRIVATE).Text("/no/such/file");
    AddTrailer(out, bits, {.time = 1, .pid = kPid, .tid = kPid});
    Add(out.Finish(RecordType::kMmap2, 2));
  }
  void AddTask(RecordType type, uint32_t pid, uint32_t tid, uint64_t time_ns) {
    RecordBuilder out;
    out.U32(pid).U32(kPid).U32(tid).U32(kPid).U64(time_ns);
    AddTrailer(out, bits, {.time = time_ns, .pid = pid, .tid = tid});
    Add(out.Finish(type));
  }
  void AddName(uint32_t tid, std::string_view name, uint64_t time_ns) {
    RecordBuilder out;
    out.U32(kPid).U32(tid).Text(name);
    AddTrailer(out, bits, {.time = time_ns, .pid = kPid, .tid = tid});
    Add(out.Finish(RecordType::kComm));
  }
  void AddSwitch(uint32_t tid, uint64_t time_ns, bool is_out) {
    RecordBuilder out;
    AddTrailer(out, bits, {.time = time_ns, .pid = kPid, .tid = tid});
    Add(out.Finish(RecordType::kSwitch, is_out ? PERF_RECORD_MISC_SWITCH_OUT : 0));
  }
  void AddLiveStack(uint32_t tid, uint64_t time_ns, const std::vector<uint64_t>& pcs, StackEnd end = StackEnd::kRoot) {
    RecordBuilder out;
    out.U64(0).U64(pcs.size() + 1).U64(LiveRecord::kUserContext).Words64(pcs);
    out.U64(LiveRecord::State(static_cast<uint8_t>(end), 0));
    for (size_t i = 0; i < LiveRecord::MarkWords(pcs.size()); ++i) out.U64(0);
    AddTrailer(out, bits, {.time = time_ns, .pid = kPid, .tid = tid});
    Add(out.Finish(static_cast<uint32_t>(RecordType::kCallchainDeferred), LiveRecord::kMisc), 0);
  }
  Profile Make(uint64_t now_ns, bool is_last = true) {
    Profile profile = aggregator.MakeProfile(now_ns, is_last, {});
    CHECK(profile.Check() == absl::OkStatus());
    return profile;
  }
};

size_t DepthOf(const Profile& profile, uint32_t stack) {
  size_t depth = 0;
  for (; stack != ProfileStack::kRoot; stack = profile.stacks[stack].parent) ++depth;
  return depth;
}

TEST_CASE("processes that are forked are no threads", "[aggregator]") {
  Written written({.off_cpu = true});
  written.AddTask(RecordType::kFork, kPid, kPid, 1);
  written.AddTask(RecordType::kFork, kPid, kPid + 1, 2);
  for (uint32_t child = kPid + 100; child < kPid + 200; ++child) {
    written.AddTask(RecordType::kFork, child, child, 3);
    written.AddTask(RecordType::kExit, child, child, 4);
  }
  CHECK(written.Make(10).threads.size() == 2);
}

// Their ends are never told.
TEST_CASE("processes that are forked leave nothing", "[aggregator]") {
  Written written({.off_cpu = true});
  written.AddTask(RecordType::kFork, kPid, kPid, 1);
  const size_t before = HeldBytes().value_or(0);
  constexpr uint32_t kChildren = 50'000;
  for (uint32_t child = kPid + 100; child < kPid + 100 + kChildren; ++child) {
    written.AddTask(RecordType::kFork, child, child, child);
  }
  CHECK(HeldBytes().value_or(0) <= before + (1 << 20));
  CHECK(written.Make(kPid + 100 + kChildren).threads.size() == 1);
}

TEST_CASE("of any process: children are threads of their own, named after their parents", "[aggregator]") {
  constexpr uint32_t kChild = kPid + 100;
  Written written({}, 0);
  written.AddTask(RecordType::kFork, kPid, kPid, 1);
  written.AddName(kPid, "make", 2);
  written.AddTask(RecordType::kFork, kChild, kChild, 3);
  written.AddSample(kPid, 4, 0x1000, 5);
  written.AddSample(kChild, 5, 0x1000, 7, 2, kChild);
  const Profile profile = written.Make(10);
  REQUIRE(profile.threads.size() == 2);
  REQUIRE(profile.samples.size() == 2);
  for (const ProfileSample& sample : profile.samples) {
    const ProfileThread& thread = profile.threads[sample.thread];
    CHECK(profile.strings[thread.name] == "make");
    CHECK(thread.pid == (sample.weight == 5 ? kPid : kChild));
  }
}

void Recognisable() {}

// As if whole CPUs were sampled: no record tells of this process.
TEST_CASE("of any process: code and names of one that was there before are looked up in /proc", "[aggregator]") {
  const auto pid = static_cast<uint32_t>(getpid());
  const auto pc = reinterpret_cast<uint64_t>(&Recognisable);
  Written written({}, 0);
  written.AddSample(pid, 1, pc, 1, 2, pid);
  written.AddSample(0, 2, 0xffff'8000'0000'0000, 1, 1, 0);  // an idle CPU
  const Profile profile = written.Make(10);
  REQUIRE(profile.samples.size() == 2);
  const ProfileLocation& location = profile.locations[profile.stacks[profile.samples[0].stack].location];
  REQUIRE(location.module != ProfileLocation::kNoModule);
  CHECK(profile.strings[profile.modules[location.module].path].ends_with("_test"));
  std::string name;
  std::getline(std::ifstream("/proc/self/comm"), name);
  CHECK(profile.strings[profile.threads[profile.samples[0].thread].name] == name);
  CHECK(profile.strings[profile.threads[profile.samples[1].thread].name] == "swapper");
}

TEST_CASE("a snapshot does not take a sample's stack from it", "[aggregator]") {
  Written written({.stacks = CallStack::Kind::kLive});
  written.AddSample(kPid, 10, 0x1000, 7);
  const Profile early = written.Make(20, false);
  REQUIRE(early.samples.size() == 1);
  CHECK(early.samples[0].quality == StackQuality::kLeafOnly);
  CHECK(early.Total(0) == Profile::Sum{7, 1});
  written.AddLiveStack(kPid, 30, {0x1000, 0x2000, 0x3000});
  const Profile late = written.Make(40);
  REQUIRE(late.samples.size() == 1);
  CHECK(late.Total(0) == Profile::Sum{7, 1});
  CHECK(late.samples[0].quality == StackQuality::kWhole);
  CHECK(DepthOf(late, late.samples[0].stack) == 3);
}

TEST_CASE("by frame pointers the kernel's callers stand between the user's and the sampled code", "[aggregator]") {
  constexpr uint64_t kKernelMark = -uint64_t{128}, kUserMark = -uint64_t{512}, kKernel = 0xffff'8000'0000'0000;
  Written written({.stacks = CallStack::Kind::kFramePointers, .off_cpu = true});
  written.AddMap(0x10000);
  written.AddSwitch(kPid, 5, false);
  SampleValues values{.ip = kKernel + 0x30, .time = 10, .pid = kPid, .tid = kPid, .misc = 1};
  values.chain = {kKernelMark, kKernel + 0x30, kKernel + 0x21, kKernel + 0x11, kUserMark, 0x2000, 0x1001};
  written.Add(BuildSample(written.bits, values), 0, 1);
  written.AddSwitch(kPid, 20, true);
  written.AddSwitch(kPid, 30, false);
  const Profile profile = written.Make(40);
  REQUIRE(profile.samples.size() == 2);
  const auto addresses = [&](uint32_t stack) {
    std::vector<uint64_t> found;
    for (; stack != ProfileStack::kRoot; stack = profile.stacks[stack].parent) {
      const ProfileLocation& location = profile.locations[profile.stacks[stack].location];
      CHECK(location.kernel == (location.address >= kKernel));
      found.push_back(location.address);
    }
    return found;
  };
  CHECK(profile.samples[0].quality == StackQuality::kPart);
  CHECK(addresses(profile.samples[0].stack) ==
        std::vector<uint64_t>{kKernel + 0x30, kKernel + 0x20, kKernel + 0x10, 0x2000, 0x1000});
  CHECK(addresses(profile.samples[1].stack) == std::vector<uint64_t>{0x2000, 0x1000});  // of the wait: where it was
}

TEST_CASE("stacks that end where tables were still to be built are parts, and a note counts them", "[aggregator]") {
  Written written({.stacks = CallStack::Kind::kLive});
  CHECK(written.Make(5).accounting.notes.empty());
  written.AddSample(kPid, 10, 0x1000);
  written.AddLiveStack(kPid, 20, {0x1000, 0x2000}, StackEnd::kNotReady);
  const Profile profile = written.Make(30);
  REQUIRE(profile.samples.size() == 1);
  CHECK(profile.samples[0].quality == StackQuality::kPart);
  REQUIRE(profile.accounting.notes.size() == 1);
  CHECK(profile.accounting.notes[0].starts_with("1 stack of the first milliseconds ends "));
}

TEST_CASE("batches have the samples of threads that are summed up later", "[aggregator]") {
  Profile::Sum given;
  size_t wrong = 0;
  const auto on_batch = [&](const SessionBatch& batch) {
    for (const ProfileSample& sample : batch.samples) {
      given.weight += sample.weight;
      given.samples += sample.samples;
      wrong += sample.merged() || batch.profile.threads[sample.thread].tid != sample.weight;
    }
  };
  Written written({.stacks = CallStack::Kind::kNone, .on_batch = on_batch});
  uint64_t time_ns = 10;
  for (uint32_t i = 1; i <= 3 * ThreadTable::kMaxEnded; ++i, time_ns += 10) {
    written.AddTask(RecordType::kFork, kPid, kPid + i, time_ns);
    written.AddSample(kPid + i, time_ns + 1, 0x1000, kPid + i);
    written.AddTask(RecordType::kExit, kPid, kPid + i, time_ns + 2);
    if (i % 100 == 0) written.aggregator.GiveBatch();
  }
  CHECK(written.aggregator.naming_cpu_ns() > 0);  // Batches have names.
  const Profile profile = written.Make(time_ns);
  CHECK(profile.threads.size() < 2 * ThreadTable::kMaxEnded);
  CHECK(given == profile.Total(0));
  CHECK(wrong == 0);
}

TEST_CASE("samples of a thread that has ended wait for no stack of another with its number", "[aggregator]") {
  Written written({.stacks = CallStack::Kind::kLive});
  written.AddTask(RecordType::kFork, kPid, kPid + 1, 1);
  written.AddSample(kPid + 1, 10, 0x1000);
  written.AddTask(RecordType::kExit, kPid, kPid + 1, 20);
  written.AddTask(RecordType::kFork, kPid, kPid + 1, 30);
  written.AddLiveStack(kPid + 1, 40, {0x1000, 0x2000});
  const Profile profile = written.Make(50);
  REQUIRE(profile.samples.size() == 1);
  CHECK(profile.samples[0].quality == StackQuality::kLeafOnly);
}

TEST_CASE("a full stack table leaves leaves, and counts them", "[aggregator]") {
  Written written({.stacks = CallStack::Kind::kLive, .memory_bytes = 1 << 16});
  constexpr uint64_t kSamples = 5000;
  for (uint64_t i = 0; i < kSamples; ++i) {
    written.AddSample(kPid, 10 * i + 1, 0x1000, 3);
    written.AddLiveStack(kPid, 10 * i + 2, {0x1000, 0x2000 + 16 * i, 0x3000});
  }
  const Profile profile = written.Make(10 * kSamples);
  uint64_t leaves = 0;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.quality == StackQuality::kLeafOnly) leaves += sample.samples;
  }
  CHECK(profile.Total(0) == Profile::Sum{3 * kSamples, kSamples});
  CHECK(leaves > 0);
  CHECK(profile.accounting.stacks_forgotten == leaves);
  CHECK(profile.stacks.size() <= (1 << 16) / 2 / 128 + 1);
}

// Each runs code at new addresses, and at old ones, too.
TEST_CASE("threads at ever new addresses have a profile of bounded size, and its sums are exact", "[aggregator]") {
  constexpr size_t kMemory = 1 << 18;
  constexpr uint32_t kThreads = 40;
  constexpr uint64_t kSamples = testing::kSanitized ? 40'000 : 200'000;
  Written written({.memory_bytes = kMemory});
  written.AddMap(uint64_t{1} << 40);
  std::vector<uint64_t> weights(kThreads);
  size_t held = 0;
  for (uint64_t i = 1; i <= kSamples; ++i) {
    const auto thread = static_cast<uint32_t>(i / 200 % kThreads);
    written.AddSample(kPid + thread, i, 0x1000 + 16 * (i % 3 == 0 ? 1000 + i : i % 200), i);
    weights[thread] += i;
    if (i == kSamples / 2) held = HeldBytes().value_or(0);
  }
  CHECK(HeldBytes().value_or(0) <= held + kMemory / 8);
  const Profile profile = written.Make(kSamples);
  std::vector<uint64_t> sums(kThreads);
  uint64_t others = 0;
  for (const ProfileSample& sample : profile.samples) {
    sums[profile.threads[sample.thread].tid - kPid] += sample.weight;
    const uint32_t location = profile.stacks[sample.stack].location;
    for (const ProfileCall& call : profile.CallsAt(location)) {
      others += profile.CallName(location, call) == "[other addresses]" ? sample.samples : 0;
    }
  }
  CHECK(sums == weights);
  CHECK(profile.Total(0).samples == kSamples);
  CHECK(others > 0);
  CHECK(profile.accounting.addresses_forgotten == others);
  CHECK(profile.accounting.stacks_forgotten == 0);  // none had callers
  CHECK(profile.samples.size() * sizeof(ProfileSample) <= kMemory / 2);
  CHECK(profile.locations.size() <= kMemory / 2 / 256);
}

TEST_CASE("a million samples take no more memory than they may, and their sums are exact", "[aggregator]") {
  constexpr size_t kMemory = 1 << 20;
  Written written({.memory_bytes = kMemory});
  constexpr uint64_t kSamples = testing::kSanitized ? 100'000 : 1'000'000;
  uint64_t weight = 0;
  for (uint64_t i = 1; i <= kSamples; ++i) {
    written.AddSample(kPid + static_cast<uint32_t>(i % 3), i, 0x1000 + 16 * (i % 100), i);
    weight += i;
  }
  const Profile profile = written.Make(kSamples);
  CHECK(profile.Total(0) == Profile::Sum{weight, kSamples});
  CHECK(profile.samples.size() * sizeof(ProfileSample) <= kMemory / 2);
  uint64_t singles = 0;
  for (const ProfileSample& sample : profile.samples) singles += sample.merged() ? 0 : 1;
  CHECK(profile.accounting.times_forgotten == kSamples - singles);
  CHECK(profile.samples.back().time_ns == kSamples);
}

// Sums by thread name: weights and samples of the event, times on and off the CPU.
struct NameSums {
  uint64_t weight = 0, samples = 0, on_ns = 0, off_ns = 0, threads = 0;
  bool operator==(const NameSums&) const = default;
};

std::map<std::string, NameSums> SumsByName(const Profile& profile) {
  std::map<std::string, NameSums> sums;
  for (const ProfileThread& thread : profile.threads) {
    NameSums& sum = sums[profile.strings[thread.name]];
    sum.on_ns += thread.on_ns, sum.off_ns += thread.off_ns;
    sum.threads += std::max<uint32_t>(thread.ended, 1);
  }
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event != 0) continue;
    NameSums& sum = sums[profile.strings[profile.threads[sample.thread].name]];
    sum.weight += sample.weight, sum.samples += sample.samples;
  }
  return sums;
}

TEST_CASE("a program that starts threads for ever has a profile of bounded size, and its sums are exact",
          "[aggregator]") {
  constexpr uint64_t kThreads = 20'000, kStep = 100;
  Written written({.stacks = CallStack::Kind::kLive, .off_cpu = true});
  const std::array<std::string, 3> names{"reader", "writer", "idle"};
  std::map<std::string, NameSums> expected;
  uint64_t now_ns = 1000;
  for (uint64_t i = 0; i < kThreads; ++i, now_ns += kStep) {
    const auto tid = static_cast<uint32_t>(kPid + 1 + i % 50);  // each number is used again and again
    const std::string& name = names[i % names.size()];
    written.AddTask(RecordType::kFork, kPid, tid, now_ns);
    written.AddName(tid, name, now_ns + 1);
    written.AddSwitch(tid, now_ns + 10, true);
    written.AddSwitch(tid, now_ns + 30, false);
    written.AddSample(tid, now_ns + 40, 0x1000 + 16 * (i % 10), i);  // its stack never comes
    written.AddTask(RecordType::kExit, kPid, tid, now_ns + 50);
    NameSums& sum = expected[name];
    sum.weight += i, sum.samples += 1, sum.on_ns += 30, sum.off_ns += 20, sum.threads += 1;
  }
  const Profile profile = written.Make(now_ns);
  CHECK(profile.threads.size() <= ThreadTable::kMaxEnded + names.size());
  CHECK(profile.strings.size() < 2 * ThreadTable::kMaxEnded);
  CHECK(SumsByName(profile) == expected);
  uint64_t off_ns = 0;
  for (const ProfileSample& sample : profile.samples) {
    const ProfileThread& thread = profile.threads[sample.thread];
    CHECK((thread.ended != 0) == (sample.merged() && thread.tid >= ProfileThread::kFirstSum));
    if (sample.event == 1) off_ns += sample.weight;
  }
  CHECK(off_ns == 20 * kThreads);
  REQUIRE_FALSE(profile.accounting.notes.empty());
  CHECK(profile.accounting.notes[0].find("summed up by name") != std::string::npos);
}

}  // namespace
}  // namespace perfkit::session
