// Samples built as the kernel builds them are parsed to the same values: all fields, many masks, all wrap offsets.
#include "perfkit/sample.h"

#include <array>
#include <catch2/catch.hpp>
#include <random>
#include <span>

#include "tests/ring/sample_values.h"
#include "tests/support/record_builder.h"

namespace perfkit {
namespace {

using testing::AsRecord;
using testing::BuildSample;
using testing::Describe;
using testing::Expected;
using testing::MemoryRing;
using testing::SampleValues;

constexpr uint64_t kAllFields = (1 << 25) - 1;

AttrBits Bits(uint64_t sample_type) {
  return {.sample_type = sample_type,
          .read_format = kReadGroup | kReadId | kReadLost | kReadTimeEnabled,
          .branch_sample_type = kBranchHwIndex,
          .regs_user = 0xf00f,
          .regs_intr = 0x8000000000000001};
}

// Puts the sample into a ring at `offset` and compares what comes out.
void RoundTrip(const AttrBits& bits, const SampleValues& values, uint64_t offset) {
  static MemoryRing ring(2048);
  ring.page().data_head = ring.page().data_tail = offset;
  RingReader reader(&ring.page(), ring.data());
  const std::string record = BuildSample(bits, values);
  REQUIRE(ring.Write(record));
  const SampleLayout layout(bits);
  const DrainStats stats = reader.Drain([&](const RawRecord& raw) {
    const std::optional<Sample> sample = Sample::Parse(raw, layout);
    if (!sample || Describe(*sample) != Expected(bits, values)) {
      INFO("sample_type " << std::hex << bits.sample_type << " read_format " << bits.read_format << " at " << offset);
      REQUIRE(sample);
      CHECK(Describe(*sample) == Expected(bits, values));
    }
  });
  REQUIRE(stats.records == 1);
}

TEST_CASE("every field, every pair of fields, and all but one, at every wrap offset", "[sample]") {
  std::vector<uint64_t> masks = {0, kAllFields};
  for (int i = 0; i < 25; ++i) {
    masks.push_back(uint64_t{1} << i);
    masks.push_back(kAllFields & ~(uint64_t{1} << i));
    for (int j = 0; j < i; ++j) masks.push_back(uint64_t{1} << i | uint64_t{1} << j);
  }
  uint64_t turn = 0;
  for (const uint64_t mask : masks) {
    const AttrBits bits = Bits(mask);
    const uint64_t size = BuildSample(bits).size();
    // Pairs: every fifth place a wrap can have, another fifth each time.
    const bool all = std::popcount(mask) != 2;
    for (uint64_t back = all ? 8 : 8 + 8 * (turn++ % 5); back <= size; back += all ? 8 : 40) {
      RoundTrip(bits, {}, 2048 - back);
    }
  }
}

TEST_CASE("any mask comes back, at any offset, with any contents", "[sample]") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 5000; ++round) {
    AttrBits bits = Bits(random() & random() & kAllFields);
    if (round % 2 == 0) bits.sample_type = random() & kAllFields;
    bits.read_format = random() & 31;
    bits.branch_sample_type = random() & (kBranchHwIndex | kBranchCounters);
    bits.regs_user = random() & random();
    bits.regs_intr = random() & random() & random();
    SampleValues values;
    values.read_values.assign(1 + random() % 3, random());
    values.chain.assign(random() % 20, random());
    values.raw.assign(4 + random() % 4 * 8, 'r');
    values.branches.assign(random() % 4, Branch{random(), random(), random()});
    values.user_abi = random() % 3;
    values.intr_abi = random() % 3;
    values.stack.assign(random() % 5 * 8, 'k');
    values.stack_copied = values.stack.empty() ? 0 : random() % (values.stack.size() + 1);
    values.aux.assign(random() % 3 * 8, 'x');
    RoundTrip(bits, values, random() % 256 * 8);
  }
}

TEST_CASE("all 2^24 masks, each at one wrap offset in turn", "[sample][.heavy]") {
  const std::string all = BuildSample(Bits(kAllFields));
  for (uint64_t mask = 0; mask < 1 << 24; ++mask) {
    const AttrBits bits = Bits(mask);
    const SampleLayout layout(bits);
    const std::string record = BuildSample(bits);
    MemoryRing ring(1024, 1024 - 8 * (1 + mask * 7 % (record.size() / 8)));
    RingReader reader(&ring.page(), ring.data());
    ring.Write(record);
    bool fits = false;
    reader.Drain([&](const RawRecord& raw) {
      const std::optional<Sample> sample = Sample::Parse(raw, layout);
      fits = sample && sample->rest().empty();
      // The last field lies where all others before it must have been understood.
      if (fits && (mask & kSampleAux) != 0) fits = testing::Text(sample->aux()) == std::string(16, 'a');
      if (fits && (mask & kSampleWeight) != 0) fits = sample->weight() == 11u;
      if (fits && (mask & kSampleCodePageSize) != 0) fits = sample->code_page_bytes() == 8192u;
      if (fits && (mask & kSamplePeriod) != 0) fits = sample->period() == 99u;
    });
    if (!fits) FAIL("mask " << std::hex << mask);
  }
}

TEST_CASE("a truncated sample is none, at every 8 bytes, and never more than its bytes", "[sample]") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 400; ++round) {
    const AttrBits bits = Bits(round == 0 ? kAllFields : random() & kAllFields);
    const SampleLayout layout(bits);
    const std::string whole = BuildSample(bits);
    for (size_t size = 8; size < whole.size(); size += 8) {
      const std::string cut = whole.substr(0, size);  // Its own allocation, so that a sanitizer sees an overrun.
      CHECK(!Sample::Parse(AsRecord(cut), layout));
    }
    CHECK(Sample::Parse(AsRecord(whole), layout));
  }
}

TEST_CASE("no 8 bytes of a sample can make its views reach outside", "[sample][corrupt]") {
  for (const uint64_t branch_sample_type : {kBranchHwIndex, kBranchHwIndex | kBranchCounters}) {
    AttrBits bits = Bits(kAllFields);
    bits.branch_sample_type = branch_sample_type;
    const SampleLayout layout(bits);
    const std::string whole = BuildSample(bits);
    size_t refused = 0, accepted = 0;
    for (size_t at = 8; at + 8 <= whole.size(); at += 4) {
      for (const uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{40}, uint64_t{0xffff}, uint64_t{1} << 31,
                                   ~uint64_t{0}, uint64_t{1} << 61, (uint64_t{1} << 61) + 1, uint64_t{1} << 63}) {
        std::string changed = whole;
        std::memcpy(changed.data() + at, &value, 8);
        const std::optional<Sample> sample = Sample::Parse(AsRecord(changed), layout);
        sample ? ++accepted : ++refused;
        if (!sample) continue;
        REQUIRE(sample->branches().counters.size() <= changed.size() / 8);
        CHECK(!Describe(*sample).empty());  // reads it all
      }
    }
    CHECK(refused > 20);
    CHECK(accepted > 100);
  }
}

TEST_CASE("what follows the last known field passes through", "[sample]") {
  // A bit of sample_type that is newer than this library, and its word.
  const AttrBits bits = Bits(uint64_t{1} << 40 | kSampleIp | kSampleCodePageSize);
  const SampleLayout layout(bits);
  const std::string record = testing::RecordBuilder().U64(1).U64(2).U64(3).Finish(RecordType::kSample);
  const std::optional<Sample> sample = Sample::Parse(AsRecord(record), layout);
  REQUIRE(sample);
  CHECK(sample->ip() == 1u);
  CHECK(sample->code_page_bytes() == 2u);
  CHECK(testing::Text(sample->rest()) == testing::RecordBuilder().U64(3).bytes());
}

TEST_CASE("a record that is no sample is not parsed as one", "[sample]") {
  const std::string record = testing::RecordBuilder().U64(1).Finish(RecordType::kLost);
  const SampleLayout layout;
  CHECK(!Sample::Parse(AsRecord(record), layout));
}

TEST_CASE("misc has the CPU mode and the precision of the ip", "[sample]") {
  const SampleLayout layout(Bits(kSampleIp));
  const SampleValues values{.misc = 2 | kMiscExactIp};
  const std::string record = BuildSample(Bits(kSampleIp), values);
  const std::optional<Sample> sample = Sample::Parse(AsRecord(record), layout);
  REQUIRE(sample);
  CHECK(sample->cpu_mode() == CpuMode::kUser);
  CHECK(sample->exact_ip());
}

TEST_CASE("a group read has no more counters than there are words for", "[sample][corrupt]") {
  constexpr uint64_t kFormat = kReadGroup | kReadId | kReadLost | kReadTimeEnabled;  // 2 words, and 3 for each counter
  for (const uint64_t count : {uint64_t{0}, uint64_t{2}, uint64_t{3}, uint64_t{6}, uint64_t{7}, ~uint64_t{0} / 3}) {
    std::array<uint64_t, 8> words{};
    words[0] = count;
    const auto values = ReadValues::Parse(Words(std::as_bytes(std::span(words)).data(), words.size()), kFormat);
    REQUIRE(values.has_value() == (count <= 2));
    if (values) CHECK(values->words() == 2 + 3 * count);
  }
}

TEST_CASE("registers are found by their number", "[sample]") {
  const AttrBits bits = Bits(kSampleRegsUser | kSampleRegsIntr);
  const SampleLayout layout(bits);
  const std::string record = BuildSample(bits);
  const std::optional<Sample> sample = Sample::Parse(AsRecord(record), layout);
  REQUIRE(sample);
  const Registers user = sample->user_registers(), intr = sample->interrupt_registers();
  for (unsigned reg = 0; reg < 70; ++reg) {
    const bool in_user = reg < 64 && (bits.regs_user >> reg & 1) != 0;
    const bool in_intr = reg < 64 && (bits.regs_intr >> reg & 1) != 0;
    CHECK(user[reg] == (in_user ? std::optional<uint64_t>(1000 + reg) : std::nullopt));
    CHECK(intr[reg] == (in_intr ? std::optional<uint64_t>(2000 + reg) : std::nullopt));
  }
  CHECK(!Registers()[0]);
}

}  // namespace
}  // namespace perfkit
