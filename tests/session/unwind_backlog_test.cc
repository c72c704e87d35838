// Unwinding that is slower than dumps come, by a clock that the test moves on.
#include "src/session/unwind_backlog.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/fake_kernel.h"
#include "tests/support/record_builder.h"

namespace perfkit::session {
namespace {

constexpr size_t kDumpBytes = 16 << 10;

AttrBits DumpBits() {
  AttrBits bits;
  bits.sample_type = kSampleIp | kSampleTid | kSampleTime | kSampleRegsUser | kSampleStackUser | kSampleWeight |
                     kSampleDataSrc;
  bits.regs_user = 0xf0;
  bits.sample_id_all = true;
  return bits;
}

// The time, which the test's rings and unwinding move on.
uint64_t& virtual_ns() {
  static uint64_t ns = 0;
  return ns;
}

// A ring that gets a sample with a dump every `period_ns`, and loses those for which it has no room.
class FullRing {
 public:
  explicit FullRing(uint64_t period_ns) : period_ns_(period_ns) { virtual_ns() = 0; }

  const SampleLayout& layout() const { return layout_; }
  uint64_t came() const { return came_; }
  uint64_t lost() const { return lost_; }

  // As Sampler::Drain: what comes meanwhile stays in the ring, and what was read leaves it at the end.
  void Read(UnwindBacklog::Visit visit) {
    Fill();
    const size_t there = times_.size();
    for (size_t i = 0; i < there; ++i) {
      virtual_ns() += kReadNs;
      const std::string bytes =
          testing::BuildSample(bits_, {.time = times_[i], .stack = std::string(kDumpBytes, 's')});
      SamplerRecord record{testing::AsRecord(bytes), 0};
      record.weight = period_ns_;
      visit(record);
    }
    Fill();
    times_.erase(times_.begin(), times_.begin() + static_cast<ptrdiff_t>(there));
  }
  // Waits until a quarter of the ring is full.
  void Wait() {
    const uint64_t at = next_ns_ + period_ns_ * (kRoom / 4);
    virtual_ns() = std::max(virtual_ns(), at);
  }

 private:
  static constexpr size_t kRoom = 31;
  static constexpr uint64_t kReadNs = 2'000;

  void Fill() {
    for (; next_ns_ <= virtual_ns(); next_ns_ += period_ns_) {
      ++came_;
      if (times_.size() < kRoom) {
        times_.push_back(next_ns_);
      } else {
        ++lost_;
      }
    }
  }

  const AttrBits bits_ = DumpBits();
  const SampleLayout layout_{bits_};
  const uint64_t period_ns_;
  uint64_t next_ns_ = 1, came_ = 0, lost_ = 0;
  std::deque<uint64_t> times_;  // of the samples in the ring
};

// What was added, and how long that takes for a sample with a dump.
struct Added {
  explicit Added(uint64_t unwind_ns, uint64_t bare_ns = 1'000) : unwind_ns(unwind_ns), bare_ns(bare_ns) {}

  void operator()(const SamplerRecord& record, const SampleLayout& layout, bool dump_dropped) {
    const std::optional<Sample> sample = Sample::Parse(record, layout);
    const bool is_right = sample && sample->user_stack().reserved == (dump_dropped ? 0 : kDumpBytes);
    if (!is_right || *sample->time_ns() <= latest_ns) {
      ++wrong;
      return;
    }
    latest_ns = *sample->time_ns();
    weight += record.weight;
    ++(dump_dropped ? dropped : unwound);
    virtual_ns() += dump_dropped ? bare_ns : unwind_ns;
  }

  const uint64_t unwind_ns, bare_ns;
  uint64_t unwound = 0, dropped = 0, wrong = 0, weight = 0, latest_ns = 0;
};

testing::FakeKernel& WithVirtualClock(testing::FakeKernel& fake) {
  fake.below().clock_gettime = [](clockid_t, timespec* time) {
    *time = {static_cast<time_t>(virtual_ns() / 1'000'000'000), static_cast<long>(virtual_ns() % 1'000'000'000)};
    return 0;
  };
  return fake;
}

constexpr uint64_t kPeriodNs = 100'000, kEndNs = 300'000'000;

TEST_CASE("no sample is lost because unwinding is slow", "[unwind_backlog]") {
  testing::FakeKernel fake;
  WithVirtualClock(fake);
  const uint64_t unwind_ns = GENERATE(20'000, 300'000, 5'000'000);
  CAPTURE(unwind_ns);
  FullRing ring(kPeriodNs);
  Added added(unwind_ns);
  constexpr size_t kMaxBytes = 4 << 20;
  UnwindBacklog backlog(true, kMaxBytes);
  uint64_t cpu_ns = 0;
  size_t max_waiting = 0;
  while (virtual_ns() < kEndNs) {
    ring.Wait();
    backlog.Drain(
        ring.layout(),
        [&](UnwindBacklog::Visit visit) {
          ring.Read(visit);
          max_waiting = std::max(max_waiting, backlog.bytes());
        },
        [&](const SamplerRecord& record, bool dropped) { added(record, ring.layout(), dropped); }, cpu_ns);
    CHECK(backlog.bytes() == 0);
  }
  CHECK(added.wrong == 0);
  CHECK(added.weight == (added.unwound + added.dropped) * kPeriodNs);
  if (unwind_ns < kPeriodNs) {
    CHECK((added.dropped == 0 && ring.lost() == 0 && max_waiting == 0 && cpu_ns == 0));
    return;
  }
  CHECK(added.dropped > 0);
  // Unwinding goes on all the time, except while samples without a dump are copied.
  CHECK(added.unwound > (virtual_ns() / unwind_ns) / 2);
  CHECK(max_waiting < kMaxBytes / 2 + ring.came() * 256 + 2 * kDumpBytes);
  CHECK(cpu_ns > virtual_ns() / 2);
  if (unwind_ns < 1'000'000) {
    CHECK(ring.lost() == 0);
    CHECK(added.unwound + added.dropped + 31 >= ring.came());  // some are in the ring
  } else {
    // One stack takes longer than the ring has room for.
    CHECK(added.unwound + added.dropped + ring.lost() + 31 >= ring.came());
  }
}

TEST_CASE("a drain ends although records come faster than they can be added", "[unwind_backlog]") {
  testing::FakeKernel fake;
  WithVirtualClock(fake);
  FullRing ring(kPeriodNs);
  Added added(4 * kPeriodNs, 3 * kPeriodNs);
  UnwindBacklog backlog(true, 4 << 20);
  uint64_t cpu_ns = 0;
  for (int i = 0; i < 5; ++i) {
    ring.Wait();
    const uint64_t begun_ns = virtual_ns();
    backlog.Drain(
        ring.layout(), [&](UnwindBacklog::Visit visit) { ring.Read(visit); },
        [&](const SamplerRecord& record, bool dropped) { added(record, ring.layout(), dropped); }, cpu_ns);
    CHECK(backlog.bytes() == 0);
    CHECK(virtual_ns() - begun_ns < 1'000'000'000);
  }
  CHECK(added.wrong == 0);
  CHECK(ring.lost() > 0);
  CHECK(added.unwound + added.dropped + ring.lost() + 31 >= ring.came());
}

// The control: what the kernel drops if rings are emptied only as fast as their stacks are unwound.
TEST_CASE("without a backlog a slow unwinder loses samples", "[unwind_backlog]") {
  testing::FakeKernel fake;
  WithVirtualClock(fake);
  FullRing ring(kPeriodNs);
  Added added(300'000);
  while (virtual_ns() < kEndNs) {
    ring.Wait();
    ring.Read([&](const SamplerRecord& record) { added(record, ring.layout(), false); });
  }
  CHECK(added.wrong == 0);
  CHECK(ring.lost() > ring.came() / 2);
}

TEST_CASE("a sample whose dump is dropped keeps all else", "[unwind_backlog]") {
  const AttrBits bits = DumpBits();
  const SampleLayout layout(bits);
  const size_t copied = GENERATE(0, 17, kDumpBytes);
  const std::string bytes =
      testing::BuildSample(bits, {.stack = std::string(kDumpBytes, 's'), .stack_copied = copied, .weight = 4711});
  SamplerRecord record{testing::AsRecord(bytes), 3};
  record.weight = 12;
  UnwindBacklog backlog(true, 2);  // room for one: the first finds it empty
  const auto read = [&](UnwindBacklog::Visit visit) { visit(record), visit(record); };
  backlog.Keep(layout, read);
  const size_t kept = backlog.bytes();
  CHECK(kept == bytes.size() + bytes.size() - kDumpBytes - 8);
  backlog.Keep(layout, read);  // full: the rings stay as they are
  CHECK(backlog.bytes() == kept);
  std::vector<bool> dropped;
  uint64_t cpu_ns = 0;
  const auto nothing = [](UnwindBacklog::Visit) {};
  backlog.Drain(
      layout, nothing,
      [&](const SamplerRecord& added, bool dump_dropped) {
        dropped.push_back(dump_dropped);
        const std::optional<Sample> sample = Sample::Parse(added, layout), whole = Sample::Parse(record, layout);
        REQUIRE((sample && whole));
        CHECK((added.event == 3 && added.weight == 12 && added.misc == record.misc));
        CHECK(sample->ip() == whole->ip());
        CHECK(sample->time_ns() == whole->time_ns());
        CHECK(sample->task()->tid == whole->task()->tid);
        CHECK(sample->user_registers()[5] == 1005);
        CHECK(sample->weight() == 4711);
        CHECK(sample->data_source() == whole->data_source());
        CHECK(sample->user_stack().reserved == (dump_dropped ? 0 : kDumpBytes));
        CHECK(sample->user_stack().bytes.size() == (dump_dropped ? 0 : copied));
      },
      cpu_ns);
  CHECK(dropped == std::vector<bool>{false, true});
}

TEST_CASE("only samples lose their dumps, and only if they have some", "[unwind_backlog]") {
  AttrBits bits = DumpBits();
  const bool has_dumps = GENERATE(false, true);
  const SampleLayout layout(bits);
  testing::RecordBuilder out;
  out.U32(1).U32(2).Text("name");
  testing::AddTrailer(out, bits);
  const std::string name = out.Finish(RecordType::kComm), bare = testing::BuildSample(bits, {.stack = ""});
  UnwindBacklog backlog(has_dumps, 2);
  std::vector<uint32_t> types;
  uint64_t cpu_ns = 0;
  backlog.Keep(layout, [&](UnwindBacklog::Visit visit) {
    for (const std::string& bytes : {name, bare, name, bare}) visit({testing::AsRecord(bytes), 0});
  });
  const auto nothing = [](UnwindBacklog::Visit) {};
  backlog.Drain(
      layout, nothing,
      [&](const SamplerRecord& record, bool dump_dropped) {
        CHECK(!dump_dropped);
        types.push_back(record.type);
        CHECK(record.size == (record.type == 9 ? bare : name).size());
      },
      cpu_ns);
  CHECK(types == std::vector<uint32_t>{3, 9, 3, 9});
}

}  // namespace
}  // namespace perfkit::session
