// The kernel as the oracle: whatever attr it accepts, each of its samples must be consumed to the byte.
//
// Random sample types and read formats on software events of this thread, a ring of eight pages that wraps many times.
#include <catch2/catch.hpp>
#include <random>

#include "perfkit/sample.h"
#include "tests/ring/live.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

struct Tally {
  size_t accepted = 0, refused = 0, samples = 0, wrapped = 0, others = 0;
  uint64_t fields = 0;  // of sample_type, seen in samples
};

// A random attr that the kernel may take: registers of every x86-64 and arm64 machine only.
sys::PerfEventAttr RandomAttr(std::mt19937_64& random) {
  sys::PerfEventAttr attr{};
  attr.type = sys::kTypeSoftware;
  attr.config = random() % 2 == 0 ? sys::kSwCpuClock : sys::kSwPageFaults;
  attr.sample_period_or_freq = attr.config == sys::kSwCpuClock ? 50'000 : 1;
  for (int bit = 0; bit < 25; ++bit) attr.sample_type |= random() % 4 == 0 ? uint64_t{1} << bit : 0;
  attr.read_format = random() & 31;
  if ((attr.sample_type & kSampleRegsUser) != 0) attr.sample_regs_user = 1 + random() % 511;
  if ((attr.sample_type & kSampleRegsIntr) != 0) attr.sample_regs_intr = 1 + random() % 511;
  if ((attr.sample_type & kSampleStackUser) != 0) attr.sample_stack_user = 8 * (1 + random() % 500);
  if ((attr.sample_type & kSampleBranchStack) != 0) attr.branch_sample_type = sys::kBranchAny;
  attr.sample_id_all = random() % 2;
  attr.context_switch = random() % 2;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.disabled = 1;
  return attr;
}

// The conditions that each sample of this thread meets.
void CheckSample(const Sample& sample, const AttrBits& bits) {
  const bool whole = sample.rest().empty();
  const std::optional<TaskId> task = sample.task();
  const bool ours = !task || (task->pid == static_cast<uint32_t>(getpid()) && task->tid == live::Tid());
  const std::optional<ReadValues> read = sample.read();
  const bool has_value =
      !read || (read->size() >= 1 && (*read)[0].id.has_value() == ((bits.read_format & kReadId) != 0));
  const bool same_id = !sample.identifier() || !sample.id() || sample.identifier() == sample.id();
  bool chain_ends = true;
  for (const ChainPart& part : sample.chain()) chain_ends = chain_ends && part.context != ChainContext::kNone;
  if (whole && ours && has_value && same_id && chain_ends) return;
  CHECK(whole);
  CHECK(ours);
  CHECK(has_value);
  CHECK(same_id);
  CHECK(chain_ends);
}

void Consume(const RawRecord& record, const SampleLayout& layout, Tally& tally) {
  const bool fits = Dispatch(record, layout,
                             Overloaded{[&](const Sample& sample) {
                                          ++tally.samples;
                                          tally.fields |= layout.bits().sample_type;
                                          CheckSample(sample, layout.bits());
                                        },
                                        [&](const LostRecord&) { ++tally.others; },
                                        [&](const SwitchRecord& change) {
                                          ++tally.others;
                                          CHECK((!change.who.tid || *change.who.tid == live::Tid()));
                                        },
                                        [&](const ThrottleRecord&) { ++tally.others; },
                                        [&](const RawRecord& raw) { FAIL("a record of type " << raw.type); }});
  if (!fits) FAIL("a record of type " << record.type << " and " << record.size << " bytes did not fit");
}

// Opens one random event, works, and checks its samples.
void Round(std::mt19937_64& random, Tally& tally) {
  const sys::PerfEventAttr attr = RandomAttr(random);
  const std::optional<live::Ring> ring = live::Ring::Open(attr, 8);
  if (!ring) return void(++tally.refused);
  ++tally.accepted;
  const SampleLayout layout(live::BitsOf(attr));
  RingReader reader = ring->Reader();
  testing::FreshPages memory(40);
  ring->Enable();
  for (int work = 0; work < 4; ++work) {
    testing::Spin(150'000);
    memory.Touch(0, memory.pages());
    memory.Forget();
    reader.Drain([&](const RawRecord& record) {
      const std::byte* const data = ring->data().data();
      tally.wrapped += record.data < data || record.data >= data + ring->data().size() ? 1 : 0;
      Consume(record, layout, tally);
    });
  }
  CHECK(reader.stats().malformed == 0);
}

void Oracle(uint64_t seed, int rounds) {
  std::mt19937_64 random(seed);
  Tally tally;
  for (int i = 0; i < rounds; ++i) Round(random, tally);
  if (tally.accepted == 0) SKIP_TEST("no software event can be sampled here");
  INFO("accepted " << tally.accepted << ", refused " << tally.refused << ", samples " << tally.samples << ", wrapped "
                   << tally.wrapped << ", other records " << tally.others << ", fields " << std::hex << tally.fields);
  CHECK(tally.accepted >= static_cast<size_t>(rounds) / 20);
  CHECK(tally.samples >= tally.accepted);
  CHECK(tally.wrapped > 0);
  // All fields except the two that need hardware, and those that an ordinary user may not request.
  constexpr uint64_t kOthers =
      kSampleBranchStack | kSampleAux | kSamplePhysAddr | kSampleRegsIntr | kSampleWeightStruct;
  CHECK((tally.fields | kOthers) == (1 << 25) - 1);
}

TEST_CASE("every sample of every attr that the kernel accepts is consumed to the byte", "[oracle][law]") {
  Oracle(1, 250);
}

TEST_CASE("the same, for long", "[oracle][.heavy][law]") {
  for (uint64_t seed = 2; seed < 22; ++seed) Oracle(seed, 1000);
}

}  // namespace
}  // namespace perfkit
