// The user page's seqlock: a kernel that writes between any two loads of a reading, in every way that there is.
#include <catch2/catch.hpp>
#include <functional>
#include <vector>

#include "tests/count/fake_page.h"

namespace perfkit {
namespace {

// The contents of a page and its counter. Each number differs from one generation to the next.
struct State {
  uint32_t index;
  uint64_t raw;
  int64_t offset;
  uint64_t enabled, running, capabilities, time_offset;
  uint16_t width, shift;
  uint32_t mult;
  uint64_t cycles, mask;
};
constexpr uint64_t kAllRights = UserPage::kCanReadCounter | UserPage::kCanTellTime | UserPage::kShortTicks;

State Generation(uint64_t g) {
  const auto small = static_cast<uint32_t>(g);
  return {.index = 3 + small,
          .raw = 0xffff'ffff'0000'0001 + g * 0x1'0000'0100,
          .offset = static_cast<int64_t>((g + 1) * 1'000'000),
          .enabled = (g + 1) * 10'000'000'000,
          .running = (g + 1) * 3'000'000'000,
          .capabilities = kAllRights,
          .time_offset = (g + 1) * 77'000,
          .width = static_cast<uint16_t>(40 + 3 * g),
          .shift = static_cast<uint16_t>(2 + g),
          .mult = 1000 + 500 * small,
          .cycles = (g + 1) << 20,
          .mask = (uint64_t{1} << (16 + g)) - 1};
}

// A kernel that takes the page from one state to others while it is being read: `speed` writes before each access of
// the reader, as soon as those have been `start`.
class Kernel {
 public:
  explicit Kernel(const State& first) : state_(first) {
    for (const auto& write : Writes(first)) write();
  }

  void Plan(const State& next, size_t start, size_t speed) {
    starts_.push_back(start);
    speed_ = speed;
    for (auto& write : Writes(next)) writes_.push_back(std::move(write));
  }
  static constexpr size_t kWrites = 14;  // of one update

  void BeforeAccess() {
    size_t update = done_ / kWrites;
    for (size_t i = 0; i < speed_ && done_ < writes_.size() && accesses_ >= starts_[update]; ++i) {
      writes_[done_++]();
      update = done_ / kWrites;
      if (update == starts_.size()) break;
    }
    if (forever_) forever_(page_);
    ++accesses_;
  }

  void SetForever(std::function<void(UserPage&)> write) { forever_ = std::move(write); }
  size_t accesses() const { return accesses_; }
  size_t updates() const { return done_ / kWrites; }
  const UserPage& page() const { return page_; }
  // A register that is not ours counts something else.
  uint64_t Register(uint32_t n) const { return n + 1 == state_.index ? state_.raw : n * 12345; }

 private:
  std::vector<std::function<void()>> Writes(const State& s) {
    return {[this] { ++page_.lock; },
            [this, s] { state_ = s; },
            [this, s] { page_.index = s.index; },
            [this, s] { page_.offset = s.offset; },
            [this, s] { page_.time_enabled = s.enabled; },
            [this, s] { page_.time_running = s.running; },
            [this, s] { page_.capabilities = s.capabilities; },
            [this, s] { page_.pmc_width = s.width; },
            [this, s] { page_.time_shift = s.shift; },
            [this, s] { page_.time_mult = s.mult; },
            [this, s] { page_.time_offset = s.time_offset; },
            [this, s] { page_.time_cycles = s.cycles; },
            [this, s] { page_.time_mask = s.mask; },
            [this] { ++page_.lock; }};
  }

  State state_;
  UserPage page_{};
  std::vector<std::function<void()>> writes_;
  std::function<void(UserPage&)> forever_;
  std::vector<size_t> starts_;
  size_t speed_ = 1, done_ = 0, accesses_ = 0;
};

struct WatchedAccess {
  static constexpr bool kHasRegisters = true;
  Kernel* kernel;

  uint32_t Lock(const UserPage& page) const { return Load(page.lock); }
  template <class T>
  T Load(const T& word) const {
    kernel->BeforeAccess();
    return word;
  }
  uint64_t Ticks() const { return kernel->BeforeAccess(), 0x1234'5678'9abc; }
  uint64_t Register(uint32_t n) const { return kernel->BeforeAccess(), kernel->Register(n); }
};

// A reading, or that there was none.
struct Reading {
  bool ok = false;
  UserCount count{};
  bool operator==(const Reading& other) const {
    return ok == other.ok && (!ok || (count.value == other.count.value && count.enabled_ns == other.count.enabled_ns &&
                                      count.running_ns == other.count.running_ns));
  }
};
std::ostream& operator<<(std::ostream& out, const Reading& r) {
  return out << (r.ok ? "" : "no ") << r.count.value << ' ' << r.count.enabled_ns << ' ' << r.count.running_ns;
}

Reading Read(Kernel& kernel) {
  Reading reading;
  reading.ok = ReadUserCount(kernel.page(), reading.count, WatchedAccess{&kernel});
  return reading;
}

Reading Still(const State& state, size_t* accesses = nullptr) {
  Kernel kernel(state);
  const Reading reading = Read(kernel);
  if (accesses != nullptr) *accesses = kernel.accesses();
  return reading;
}

TEST_CASE("two generations have no number in common", "[user_page]") {
  for (uint64_t g = 0; g < 4; ++g) {
    const Reading a = Still(Generation(g)), b = Still(Generation(g + 1));
    REQUIRE((a.ok && b.ok));
    CHECK(a.count.value != b.count.value);
    CHECK(a.count.enabled_ns != b.count.enabled_ns);
    CHECK(a.count.running_ns != b.count.running_ns);
  }
}

TEST_CASE("an update between any two loads makes a reading start again", "[user_page]") {
  size_t plain = 0;
  const Reading before = Still(Generation(0), &plain), after = Still(Generation(1));
  REQUIRE(plain == 15);  // all that the conversion reads, and the lock twice
  for (size_t start = 0; start < plain + 2; ++start) {
    CAPTURE(start);
    Kernel kernel(Generation(0));
    kernel.Plan(Generation(1), start, Kernel::kWrites);
    const Reading reading = Read(kernel);
    const bool between = start > 0 && start < plain;
    CHECK(reading == (start < plain ? after : before));
    CHECK(kernel.accesses() == (between ? 2 * plain : plain));
  }
}

TEST_CASE("an update that takes its time, on another CPU, gives no mixture", "[user_page]") {
  size_t plain = 0;
  const Reading before = Still(Generation(0), &plain), after = Still(Generation(1));
  for (size_t start = 0; start < plain + 2; ++start) {
    for (size_t speed = 1; speed < Kernel::kWrites; ++speed) {
      CAPTURE(start, speed);
      Kernel kernel(Generation(0));
      kernel.Plan(Generation(1), start, speed);
      const Reading reading = Read(kernel);
      CHECK(reading == (start < plain ? after : before));
    }
  }
}

TEST_CASE("an update after another gives the last, or one that was whole", "[user_page]") {
  size_t plain = 0;
  const Reading first = Still(Generation(0), &plain), second = Still(Generation(1)), third = Still(Generation(2));
  int seen[3] = {};
  for (size_t start = 0; start < plain + 2; ++start) {
    for (size_t next = start; next < start + 3 * plain; ++next) {
      for (const size_t speed : {size_t{1}, size_t{4}, Kernel::kWrites, 2 * Kernel::kWrites}) {
        CAPTURE(start, next, speed);
        Kernel kernel(Generation(0));
        kernel.Plan(Generation(1), start, speed);
        kernel.Plan(Generation(2), next, speed);
        const Reading reading = Read(kernel);
        CHECK((reading == first || reading == second || reading == third));
        ++seen[reading == first ? 0 : reading == second ? 1 : 2];
        CHECK(reading == Still(Generation(kernel.updates())));
      }
    }
  }
  CHECK((seen[0] > 0 && seen[1] > 0 && seen[2] > 0));
}

TEST_CASE("an event that loses or gets its counter meanwhile is read whole or not at all", "[user_page]") {
  State without = Generation(1), refused = Generation(1);
  without.index = 0;
  refused.capabilities &= ~UserPage::kCanReadCounter;
  for (const auto& [from, to] :
       {std::pair{Generation(0), without}, std::pair{Generation(0), refused}, std::pair{without, Generation(0)}}) {
    const Reading before = Still(from), after = Still(to);
    REQUIRE(before.ok != after.ok);
    for (size_t start = 0; start < 20; ++start) {
      for (const size_t speed : {size_t{1}, size_t{3}, Kernel::kWrites}) {
        CAPTURE(start, speed);
        Kernel kernel(from);
        kernel.Plan(to, start, speed);
        const Reading reading = Read(kernel);
        CHECK((reading == before || reading == after));
      }
    }
  }
}

TEST_CASE("a counter that starts again in the same register is no mixture either", "[user_page]") {
  size_t plain = 0;
  State restarted = Generation(0);
  restarted.raw += 5000;
  restarted.offset -= 4000;
  const Reading before = Still(Generation(0), &plain), after = Still(restarted);
  REQUIRE(after.count.value == before.count.value + 1000);
  for (size_t start = 0; start < plain; ++start) {
    Kernel kernel(Generation(0));
    kernel.Plan(restarted, start, Kernel::kWrites);
    CHECK(Read(kernel) == after);
  }
}

TEST_CASE("a page that changes for ever is given up after a bound", "[user_page]") {
  size_t plain = 0;
  Still(Generation(0), &plain);
  const std::function<void(UserPage&)> kChanges[] = {
      [](UserPage& page) { page.lock += 2; },
      [](UserPage& page) { page.lock |= 1; },  // a writer that never comes back
      [](UserPage& page) { ++page.lock; },
  };
  for (const auto& change : kChanges) {
    Kernel kernel(Generation(0));
    kernel.SetForever(change);
    CHECK_FALSE(Read(kernel).ok);
    CHECK(kernel.accesses() >= 10);  // not at the first try
    CHECK(kernel.accesses() <= 100 * plain);
  }
}

TEST_CASE("the lock may go round at 2^32", "[user_page]") {
  size_t plain = 0;
  const Reading after = Still(Generation(1), &plain);
  Kernel kernel(Generation(0));
  kernel.SetForever([first = true](UserPage& page) mutable {
    if (first) page.lock = ~uint32_t{1};
    first = false;
  });
  kernel.Plan(Generation(1), 5, Kernel::kWrites);
  CHECK(Read(kernel) == after);
  CHECK(kernel.page().lock == 0);
}

}  // namespace
}  // namespace perfkit
