// Rings of the kernel: exact accounting for events of period 1, forward, backward, with one page, and with a stalled
// reader.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "tests/ring/live.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

// Page faults of this thread, each a sample with its address.
sys::PerfEventAttr FaultAttr(bool backward = false) {
  sys::PerfEventAttr attr{};
  attr.type = sys::kTypeSoftware;
  attr.config = sys::kSwPageFaults;
  attr.sample_period_or_freq = 1;
  attr.sample_type = kSampleAddr | kSampleTid | kSampleTime;
  attr.read_format = kReadLost;
  attr.exclude_kernel = 1;
  attr.disabled = 1;
  attr.write_backward = backward;
  return attr;
}

struct Counted {
  uint64_t value = 0, lost = 0;
};

Counted ReadCount(const live::Ring& ring) {
  Counted counted;
  if (read(ring.fd(), &counted, sizeof(counted)) != sizeof(counted)) FAIL("cannot read the event");
  return counted;
}

// The faults in the pages of `memory`, in the order of the touches. Excludes a sanitizer's own faults.
class Faults {
 public:
  Faults(const testing::FreshPages& memory, const AttrBits& bits) : memory_(memory), layout_(bits) {}

  void operator()(const RawRecord& record) {
    const std::optional<Sample> sample = Sample::Parse(record, layout_);
    if (record.type == static_cast<uint32_t>(RecordType::kLost)) return;
    REQUIRE(sample);
    ++samples;
    const uint64_t from = reinterpret_cast<uint64_t>(memory_.data());
    const uint64_t address = *sample->address();
    if (address >= from && address < from + memory_.pages() * 4096) pages.push_back((address - from) / 4096);
  }
  size_t samples = 0;
  std::vector<size_t> pages;

 private:
  const testing::FreshPages& memory_;
  SampleLayout layout_;
};

TEST_CASE("each fault is a sample, in order, through rings of every size", "[live]") {
  for (const size_t pages : {1, 2, 8}) {
    testing::FreshPages memory(600);
    const std::optional<live::Ring> ring = live::Ring::Open(FaultAttr(), pages);
    if (!ring) SKIP_TEST("page faults cannot be sampled here");
    RingReader reader = ring->Reader();
    Faults faults(memory, live::BitsOf(FaultAttr()));
    faults.pages.reserve(1000);
    ring->Enable();
    for (size_t i = 0; i < memory.pages(); i += 40) {
      memory.Touch(i, 40);
      reader.Drain(faults);
    }
    ring->Disable();
    reader.Drain(faults);
    INFO(pages << " pages");
    const Counted counted = ReadCount(*ring);
    CHECK(counted.lost == 0);
    CHECK(faults.samples == counted.value);
    CHECK(reader.stats().malformed == 0);
    REQUIRE(faults.pages.size() == memory.pages());
    for (size_t i = 0; i < memory.pages(); ++i) CHECK(faults.pages[i] == i);
    CHECK(ring->page()->data_tail == ring->page()->data_head);
  }
}

TEST_CASE("a reader that stalls loses what the kernel says it lost, and no more", "[live]") {
  testing::FreshPages memory(500);
  const std::optional<live::Ring> ring = live::Ring::Open(FaultAttr(), 1);
  if (!ring) SKIP_TEST("page faults cannot be sampled here");
  RingReader reader = ring->Reader();
  Faults faults(memory, live::BitsOf(FaultAttr()));
  faults.pages.reserve(1000);
  ring->Enable();
  for (size_t i = 0; i < memory.pages(); i += 250) {
    memory.Touch(i, 250);  // a page holds about 128 of them
    reader.Drain(faults);
  }
  ring->Disable();
  reader.Drain(faults);
  const Counted counted = ReadCount(*ring);
  CHECK(counted.lost > 200);
  CHECK(faults.samples + counted.lost == counted.value);
  CHECK(reader.stats().malformed == 0);
}

TEST_CASE("a backward ring of the kernel's, paused: the latest faults, newest first, all bytes accounted for",
          "[live]") {
  for (const size_t pages : {1, 4}) {
    testing::FreshPages memory(1000);
    const std::optional<live::Ring> ring = live::Ring::Open(FaultAttr(true), pages);
    if (!ring) SKIP_TEST("backward rings cannot be had here");
    RingReader reader = ring->Reader();
    Faults faults(memory, live::BitsOf(FaultAttr()));
    faults.pages.reserve(2000);
    ring->Enable();
    for (const size_t upto : {50, 1000}) {
      memory.Touch(upto == 50 ? 0 : 50, upto == 50 ? 50 : 950);
      ring->Pause(true);
      const uint64_t before = reader.stats().bytes + reader.stats().overwritten_bytes;
      faults.pages.clear();
      const DrainStats stats = reader.Drain(faults);
      CHECK(stats.malformed == 0);
      CHECK(before + stats.bytes + stats.overwritten_bytes == uint64_t{0} - ring->page()->data_head);
      REQUIRE(!faults.pages.empty());
      for (size_t i = 0; i < faults.pages.size(); ++i) CHECK(faults.pages[i] == upto - 1 - i);
      if (upto == 50) CHECK(faults.pages.size() == 50);
      if (upto == 1000 && !testing::kSanitized) CHECK(stats.bytes + 48 > ring->data().size());
      ring->Pause(false);
    }
  }
}

TEST_CASE("a thread reads the ring of another while that one writes", "[live]") {
  testing::FreshPages memory(20'000);
  std::optional<live::Ring> ring;
  std::atomic<bool> opened{false}, done{false};
  std::thread writer([&] {
    if (auto opened_ring = live::Ring::Open(FaultAttr(), 8)) ring.emplace(*std::move(opened_ring));
    opened = true;
    if (!ring) return;
    ring->Enable();
    memory.Touch(0, memory.pages());
    ring->Disable();
    done = true;
  });
  while (!opened) std::this_thread::yield();
  if (!ring) {
    writer.join();
    SKIP_TEST("page faults cannot be sampled here");
  }
  RingReader reader = ring->Reader();
  Faults faults(memory, live::BitsOf(FaultAttr()));
  while (!done) reader.Drain(faults);
  writer.join();
  reader.Drain(faults);
  const Counted counted = ReadCount(*ring);
  CHECK(faults.samples + counted.lost == counted.value);
  CHECK(reader.stats().malformed == 0);
  CHECK(std::is_sorted(faults.pages.begin(), faults.pages.end()));
}

}  // namespace
}  // namespace perfkit
