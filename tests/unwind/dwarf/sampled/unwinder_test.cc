// The Unwinder on samples of this very program, and on impossible samples.
#include "perfkit/unwinder.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/sampler.h"
#include "tests/support/counted_new.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"
#include "tests/unwind/dwarf/sampled/hand_sample.h"

namespace perfkit {
namespace {

using testing::HandSample;
using testing::RegistersOf;

const auto kThisProcess = static_cast<uint32_t>(getpid());

[[gnu::noinline]] uint64_t Dive(int depth, uint64_t x) {
  volatile char room[64] = {};
  room[x % 64] = static_cast<char>(depth);
  if (depth == 0) return testing::Spin(2000) + static_cast<uint64_t>(room[1]);
  return Dive(depth - 1, x + 1) + static_cast<uint64_t>(room[x % 64]);
}

int Compare(const void* a, const void* b) { return *static_cast<const int*>(a) - *static_cast<const int*>(b); }

// Recursion, calls back from the C library, a throw now and then.
uint64_t WorkForSamples(int rounds) {
  uint64_t sum = 0;
  for (int i = 0; i < rounds; ++i) {
    sum += Dive(i % 40, 1);
    int numbers[200];
    for (int k = 0; k < 200; ++k) numbers[k] = k * 7919 % 200;
    qsort(numbers, 200, sizeof(int), Compare);
    char text[100];
    sum += static_cast<uint64_t>(snprintf(text, sizeof(text), "%d %f", numbers[3], i * 1.5));
  }
  return sum;
}

// Records of two threads that work, with their dumps.
struct Recorded {
  SampleLayout layout;
  std::vector<std::string> records;  // of all types, in order

  std::vector<Sample> samples() const {
    std::vector<Sample> samples;
    for (const std::string& bytes : records) {
      if (const auto sample = Sample::Parse(testing::AsRecord(bytes), layout)) samples.push_back(*sample);
    }
    return samples;
  }
  void Feed(Unwinder& unwinder) const {
    for (const std::string& bytes : records) unwinder.Add(testing::AsRecord(bytes), layout);
  }
};

// For failures: where an address is, by the dynamic linker.
std::string Whereabouts(uint64_t address) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(address), &info) == 0) return absl::StrFormat("%#x", address);
  const char* const name = info.dli_sname != nullptr ? info.dli_sname : "?";
  return absl::StrFormat("%#x (%s, %s)", address, name, info.dli_fname);
}

// For failures: the frames that were found, and what the top of the stack holds.
std::string Describe(const Sample& sample, const UnwoundStack& stack, const std::vector<StackFrame>& frames) {
  std::string text = absl::StrFormat("%s after %d frames:", StackEndName(stack.end), stack.frames);
  for (size_t i = 0; i < std::min<size_t>(stack.frames, 8); ++i) text += " " + Whereabouts(frames[i].code());
  text += "; stack:";
  const auto bytes = sample.user_stack().bytes;
  for (size_t at = 0; at + 8 <= std::min<size_t>(bytes.size(), 128); at += 8) {
    uint64_t word = 0;
    memcpy(&word, bytes.data() + at, sizeof(word));
    text += " " + Whereabouts(word);
  }
  return text;
}

Recorded RecordThisProgram() {
  SamplerOptions options;
  options.events = {{.event = "task-clock:u", .rate = Period{200'000}}};
  options.stack = CallStack::UserDump(24 << 10);  // the sampler's own frames have arrays of 16 KiB
  options.side_band = true;
  absl::StatusOr<Sampler> sampler = Sampler::Open(options, Target::AllThreads());
  INFO(sampler.status());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  Recorded recorded{sampler->layout(), {}};
  size_t samples = 0;
  const auto drain = [&] {
    sampler->Drain([&](const SamplerRecord& record) {
      samples += record.type == static_cast<uint32_t>(RecordType::kSample);
      recorded.records.emplace_back(reinterpret_cast<const char*>(record.data), record.size);
    });
  };
  uint64_t sums[2] = {};
  for (int i = 0; i < 1000 && samples < 300; ++i) {
    std::thread other([&] { sums[0] += WorkForSamples(30); });
    sums[1] += WorkForSamples(30);
    other.join();
    drain();
  }
  REQUIRE(sampler->Stop().ok());
  drain();
  CHECK(sums[0] == sums[1]);
  return recorded;
}

TEST_CASE("stacks of this program reach their roots, alone and in batches", "[unwinder][law]") {
  const Recorded recorded = RecordThisProgram();
  const std::vector<Sample> samples = recorded.samples();
  REQUIRE(samples.size() >= 100);
  Unwinder unwinder;
  recorded.Feed(unwinder);

  constexpr size_t kRoom = 200;
  std::vector<StackFrame> frames(kRoom);
  std::vector<UnwoundStack> alone;
  std::vector<std::vector<StackFrame>> frames_alone;
  size_t deepest = 0, complete = 0;
  for (const Sample& sample : samples) {
    const UnwoundStack stack = unwinder.Unwind(sample, frames);
    // A page of a stack that was never touched ends a dump early, or before it begins.
    const UserStack dump = sample.user_stack();
    const StackEnd short_end = dump.bytes.empty() ? StackEnd::kNoStack : StackEnd::kTruncated;
    // A sanitizer's own code needs more stack than is copied.
    const bool short_dump = testing::kSanitized || dump.bytes.size() < dump.reserved;
    const bool is_whole = stack.complete() || (short_dump && stack.end == short_end);
    INFO((is_whole ? "" : Describe(sample, stack, frames)));
    CHECK(is_whole);
    complete += stack.complete();
    CHECK(stack.guesses == 0);
    REQUIRE(stack.frames > 0);
    CHECK(frames[0].pc == sample.user_registers()[unwind::ThisMachine::kPerf[unwind::ThisMachine::kPc]]);
    CHECK_FALSE(frames[0].is_return_address);
    deepest = std::max<size_t>(deepest, stack.frames);
    alone.push_back(stack);
    frames_alone.emplace_back(frames.begin(), frames.begin() + stack.frames);
  }
  CHECK(deepest >= 30);
  CHECK(complete >= samples.size() * (testing::kSanitized ? 25 : 95) / 100);

  std::vector<UnwoundStack> batch(samples.size());
  std::vector<StackFrame> all(samples.size() * kRoom);
  unwinder.Unwind(samples, all, batch);
  for (size_t i = 0; i < samples.size(); ++i) {
    REQUIRE(batch[i] == alone[i]);
    REQUIRE(std::equal(frames_alone[i].begin(), frames_alone[i].end(), all.begin() + static_cast<long>(i * kRoom)));
  }

  const UnwinderStats before = unwinder.stats();
  const uint64_t allocations = testing::allocations_so_far;
  for (const Sample& sample : samples) unwinder.Unwind(sample, frames);
  unwinder.Unwind(samples, all, batch);
  if (testing::kCountsNew) CHECK(testing::allocations_so_far - allocations == 0);
  const UnwinderStats after = unwinder.stats();
  CHECK(after.stacks == before.stacks + 2 * samples.size());
  CHECK(after.frames == 2 * before.frames);
  CHECK(after.cache_hits - before.cache_hits >= (after.rule_lookups - before.rule_lookups) * 9 / 10);
  CHECK(after.modules >= 2);
  CHECK(after.unreadable_modules == 0);
  CHECK(after.table_bytes == before.table_bytes);
  CHECK(after.table_bytes > 0);
}

TEST_CASE("mappings of /proc do as well as records", "[unwinder][law]") {
  const Recorded recorded = RecordThisProgram();
  Unwinder by_records, by_maps;
  recorded.Feed(by_records);
  REQUIRE(by_maps.AddProcess(getpid()).ok());
  for (const Sample& sample : recorded.samples()) {
    StackFrame one[100], other[100];
    const UnwoundStack stack = by_records.Unwind(sample, one);
    REQUIRE(by_maps.Unwind(sample, other) == stack);
    CHECK(std::equal(one, one + stack.frames, other));
  }
  CHECK(absl::IsNotFound(by_maps.AddProcess(0x7ffffff)));
}

TEST_CASE("a walk that cannot begin says so", "[unwinder][law]") {
  Unwinder unwinder;
  REQUIRE(unwinder.AddProcess(getpid()).ok());
  StackFrame frames[8];
  const auto here = reinterpret_cast<uint64_t>(&Dive);
  const std::string stack(64, '\1');
  const auto end = [&](const HandSample& sample) { return unwinder.Unwind(sample.sample(), frames); };

  CHECK(end(HandSample(kThisProcess, RegistersOf(here, 0x1000), stack, 0)) == UnwoundStack{});
  CHECK(end(HandSample(kThisProcess, RegistersOf(here, 0x1000), stack, 1)).end == StackEnd::kNoRegisters);
  const UnwoundStack no_stack = end(HandSample(kThisProcess, RegistersOf(here, 0x1000), ""));
  CHECK(no_stack.end == StackEnd::kNoStack);
  CHECK(no_stack.frames == 1);
  CHECK(frames[0] == StackFrame{here, false, false});
  const UnwoundStack nowhere = end(HandSample(kThisProcess, RegistersOf(12, 0x1000), stack));
  CHECK(nowhere.end == StackEnd::kNoMapping);
  CHECK(nowhere.frames == 1);
  CHECK(end(HandSample(0x7ffffff, RegistersOf(here, 0x1000), stack)).end == StackEnd::kNoMapping);
  CHECK(end(HandSample(kThisProcess, RegistersOf(UINT64_MAX, 0x1000), stack)).end == StackEnd::kNoMapping);
}

// glibc's clone3 returns to a new thread with the information of its parent, and its registers but for the stack's.
TEST_CASE("where a thread has an empty stack and its parent's frame pointer, it has just begun", "[unwinder][law]") {
  if (unwind::ThisMachine::kLinkRegister) return;  // There the return address is the parent's.
  Unwinder unwinder;
  REQUIRE(unwinder.AddProcess(getpid()).ok());
  StackFrame frames[8];
  const auto first_instruction = reinterpret_cast<uint64_t>(&Dive);
  std::string stack(64, '\0');
  const auto end = [&] {
    const HandSample sample(kThisProcess, RegistersOf(first_instruction, 0x1000, 0x7ffff000), stack);
    return unwinder.Unwind(sample.sample(), frames);
  };
  CHECK((end().end == StackEnd::kRoot && end().frames == 1));
  stack[0] = 1;
  CHECK((end().end == StackEnd::kNoMapping && end().frames == 1));
}

TEST_CASE("a stack has no more frames than there is room for", "[unwinder][law]") {
  const Recorded recorded = RecordThisProgram();
  Unwinder unwinder;
  recorded.Feed(unwinder);
  size_t limited = 0;
  for (const Sample& sample : recorded.samples()) {
    StackFrame whole[200], few[5];
    const UnwoundStack stack = unwinder.Unwind(sample, whole), part = unwinder.Unwind(sample, few);
    CHECK(part.frames == std::min<uint32_t>(stack.frames, 5));
    CHECK(part.end == (stack.frames > 5 ? StackEnd::kLimit : stack.end));
    CHECK(std::equal(few, few + part.frames, whole));
    limited += part.end == StackEnd::kLimit;
    const UnwoundStack none = unwinder.Unwind(sample, {});
    CHECK(none.frames == 0);
    CHECK(none.end == StackEnd::kLimit);
  }
  CHECK(limited > 0);
}

// Deep stacks take turns. After shallow or truncated ones, stacks are unwound one after the other.
TEST_CASE("a batch finds what single walks do, whatever it has learned of stacks before", "[unwinder][law]") {
  const Recorded recorded = RecordThisProgram();
  const std::vector<Sample> samples = recorded.samples();
  REQUIRE(samples.size() >= 100);
  Unwinder alone, in_batches;
  recorded.Feed(alone);
  recorded.Feed(in_batches);
  for (const size_t room : {200, 2, 2, 1, 200, 3, 3}) {
    std::vector<StackFrame> frames(room), all(samples.size() * room);
    std::vector<UnwoundStack> stacks(samples.size());
    in_batches.Unwind(samples, all, stacks);
    for (size_t i = 0; i < samples.size(); ++i) {
      const UnwoundStack stack = alone.Unwind(samples[i], frames);
      INFO("room " << room << ", sample " << i);
      REQUIRE(stacks[i] == stack);
      REQUIRE(std::equal(frames.begin(), frames.begin() + stack.frames, all.begin() + static_cast<long>(i * room)));
    }
  }
  CHECK(in_batches.stats().stacks == alone.stats().stacks);
  CHECK(in_batches.stats().frames == alone.stats().frames);
}

TEST_CASE("memory without a file is not counted as an unreadable file", "[unwinder]") {
  constexpr uint32_t kPid = 41;
  Unwinder unwinder;
  std::vector<StackFrame> frames(10);
  uint64_t base = 0x10000;
  for (const std::string name : {"//anon", "/no/such/file"}) {
    testing::RecordBuilder record;
    record.U32(kPid).U32(kPid).U64(base).U64(0x1000).U64(0);
    record.U32(0).U32(0).U64(0).U64(0).U32(5).U32(2).Text(name);
    unwinder.Add(testing::AsRecord(record.Finish(RecordType::kMmap2, 2)), SampleLayout());
    const HandSample sample(kPid, RegistersOf(base + 1, 0x7000), std::string(64, '\0'));
    CHECK(unwinder.Unwind(sample.sample(), frames).frames >= 1);
    CHECK(unwinder.stats().unreadable_modules == (name == "//anon" ? 0 : 1));
    base += 0x10000;
  }
  CHECK(unwinder.stats().modules == 0);
}

// The key of address 0 in a process without a number is that of an empty entry of the cache.
TEST_CASE("in an unknown process no address has a rule") {
  Unwinder unwinder;
  std::vector<StackFrame> frames(10);
  std::string stack(64, '\0');
  const uint64_t record[] = {0x7020, 1};  // a frame pointer, and a return address
  std::memcpy(stack.data(), record, sizeof(record));
  for (const uint64_t pc : {0, 1, 0x5000}) {
    const HandSample sample(kThisProcess, RegistersOf(pc, 0x7000, 0x7000), stack);
    const UnwoundStack found = unwinder.Unwind(sample.sample(), frames);
    CHECK(found.end == StackEnd::kNoMapping);
    CHECK((found.frames == 1 && found.guesses == 0));
  }
}

TEST_CASE("hostile registers and stacks end within the room for frames", "[unwinder][law]") {
  Unwinder unwinder;
  REQUIRE(unwinder.AddProcess(getpid()).ok());
  std::mt19937_64 random(5);
  const uint64_t codes[] = {reinterpret_cast<uint64_t>(&Dive), reinterpret_cast<uint64_t>(&qsort),
                            reinterpret_cast<uint64_t>(&snprintf), reinterpret_cast<uint64_t>(&RecordThisProgram)};
  constexpr uint64_t kSp = 0x7ffd'0000'0000;
  const auto word = [&]() -> uint64_t {
    switch (random() % 4) {
      case 0: return random();
      case 1: return kSp + random() % 4096;
      default: return codes[random() % std::size(codes)] + random() % 20000;
    }
  };
  std::vector<StackFrame> frames(300);
  size_t longest = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string stack(random() % 4096, '\0');
    for (size_t at = 0; at + 8 <= stack.size(); at += 8) {
      const uint64_t value = word();
      std::memcpy(stack.data() + at, &value, 8);
    }
    testing::FullRegisters registers = RegistersOf(word(), random() % 8 == 0 ? random() : kSp, word());
    for (unsigned k = 0; k < 6; ++k) registers.Set(k, word());
    const UnwoundStack found = unwinder.Unwind(HandSample(kThisProcess, registers, stack).sample(), frames);
    REQUIRE(found.frames <= frames.size());
    longest = std::max<size_t>(longest, found.frames);
  }
  CHECK(longest >= 3);
}

TEST_CASE("every end has a name", "[unwinder]") {
  CHECK(StackEndName(StackEnd::kRoot) == "root");
  CHECK(StackEndName(StackEnd::kNoRegisters) == "no registers");
  CHECK(StackEndName(static_cast<StackEnd>(99)).empty());
}

}  // namespace
}  // namespace perfkit
