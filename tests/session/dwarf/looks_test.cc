// Looks at threads that block at known depths, each held against the return addresses that the thread has written down.
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "src/session/blocked_look.h"
#include "src/session/look_files.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::session {
namespace {

// A thread that goes up and down its stack, and blocks at the top. `version` is odd while it is in a call that blocks:
// then `returns` do not change. Stores are releases, and the reader's loads acquire them: what it reads between two
// loads of one odd version is of that call.
struct Climber {
  static constexpr size_t kMaxDepth = 64;

  std::atomic<uint64_t> version{0};
  std::array<std::atomic<uint64_t>, kMaxDepth> returns{};  // outermost first
  std::atomic<size_t> depth{0};
  std::atomic<pid_t> tid{0};
  std::mt19937 random;
  std::mutex mutex;
  std::condition_variable condition;
  int ends[2] = {-1, -1};
};

// Writes down where a function returns to, for as long as it runs.
class Written {
 public:
  Written(Climber& climber, void* address) : climber_(climber) {
    const size_t at = climber.depth.load(std::memory_order_relaxed);
    climber.returns[at].store(reinterpret_cast<uint64_t>(address), std::memory_order_relaxed);
    climber.depth.store(at + 1, std::memory_order_relaxed);
  }
  ~Written() { climber_.depth.fetch_sub(1, std::memory_order_relaxed); }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;

 private:
  Climber& climber_;
};

[[gnu::noinline]] void BlockForAWhile(Climber& climber) {
  const Written written(climber, __builtin_return_address(0));
  const auto us = static_cast<long>(200 + climber.random() % 2800);
  const timespec time{0, us * 1000};
  climber.version.fetch_add(1, std::memory_order_seq_cst);
  switch (climber.random() % 4) {
    case 0: nanosleep(&time, nullptr); break;
    case 1: ppoll(nullptr, 0, &time, nullptr); break;
    case 2: {
      std::unique_lock<std::mutex> lock(climber.mutex);
      climber.condition.wait_for(lock, std::chrono::microseconds(us));
      break;
    }
    default: {
      pollfd wanted{climber.ends[0], POLLIN, 0};
      ppoll(&wanted, 1, &time, nullptr);
    }
  }
  climber.version.fetch_add(1, std::memory_order_seq_cst);
}

void Climb(Climber& climber, unsigned left);

template <size_t kBytes>
[[gnu::noinline]] void ClimbOver(Climber& climber, unsigned left) {
  const Written written(climber, __builtin_return_address(0));
  char room[kBytes];
  asm volatile("" : : "r"(room) : "memory");
  Climb(climber, left);
  asm volatile("" : : "r"(room) : "memory");
}

[[gnu::noinline]] void Climb(Climber& climber, unsigned left) {
  const Written written(climber, __builtin_return_address(0));
  constexpr std::array kSteps = {ClimbOver<40>, ClimbOver<200>, ClimbOver<1000>};
  if (left == 0) {
    BlockForAWhile(climber);
  } else {
    kSteps[climber.random() % kSteps.size()](climber, left - 1);
  }
  asm volatile("");
}

struct LookSums {
  uint64_t looks = 0, accepted = 0, right = 0, wrong = 0, part = 0, undecided = 0;
};

// Whether the frames, innermost first, hold all addresses that were written down, one after the other.
bool HoldsAll(std::span<const StackFrame> frames, std::vector<uint64_t> returns) {
  std::reverse(returns.begin(), returns.end());
  const auto found = std::search(frames.begin(), frames.end(), returns.begin(), returns.end(),
                                 [](const StackFrame& frame, uint64_t address) { return frame.pc == address; });
  return found != frames.end();
}

void LookOnce(Climber& climber, LookFiles& files, StackUnwinder& unwinder, std::span<StackFrame> frames,
              LookSums& sums) {
  const uint64_t before = climber.version.load(std::memory_order_seq_cst);
  std::vector<uint64_t> returns(std::min(climber.depth.load(), Climber::kMaxDepth));
  for (size_t i = 0; i < returns.size(); ++i) returns[i] = climber.returns[i].load();
  const auto look = LookAtBlocked(static_cast<uint32_t>(getpid()), files.Of(climber.tid.load()), &unwinder, frames);
  const uint64_t after = climber.version.load(std::memory_order_seq_cst);
  ++sums.looks;
  if (!look) return;
  ++sums.accepted;
  if (before != after || before % 2 == 0) {
    ++sums.undecided;  // it was off for another reason, or went on after the look
  } else if (look->stack.end != StackEnd::kRoot) {
    ++sums.part;
  } else {
    ++(HoldsAll(frames.first(look->stack.frames), returns) ? sums.right : sums.wrong);
  }
}

// Looks until `wanted` looks were right or wrong; gives up after a thousand times as many.
LookSums LookAtClimbers(uint64_t wanted) {
  const std::unique_ptr<StackUnwinder> unwinder = (&StackHookTable)->unwinder(0);
  REQUIRE(unwinder->AddProcess(static_cast<uint32_t>(getpid())) == absl::OkStatus());
  std::atomic<bool> stop{false};
  std::array<Climber, 6> climbers;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < climbers.size(); ++i) {
    Climber& climber = climbers[i];
    climber.random.seed(static_cast<uint32_t>(i + 1));
    REQUIRE(pipe(climber.ends) == 0);
    threads.emplace_back([&climber, &stop] {
      climber.tid = static_cast<pid_t>(syscall(SYS_gettid));
      while (!stop) Climb(climber, 1 + climber.random() % 20);
    });
  }
  for (const Climber& climber : climbers) {
    while (climber.tid == 0) std::this_thread::yield();
  }
  std::vector<StackFrame> frames(256);
  LookFiles files;
  LookSums sums;
  for (uint64_t i = 0; sums.right + sums.wrong < wanted && i < 1000 * wanted; ++i) {
    LookOnce(climbers[i % climbers.size()], files, *unwinder, frames, sums);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (const Climber& climber : climbers) close(climber.ends[0]), close(climber.ends[1]);
  return sums;
}

void CheckLooks(uint64_t wanted) {
  if (const absl::Status readable = proc::CanReadBlockedCalls(); !readable.ok()) {
    SKIP_TEST(std::string(readable.message()));
  }
  const LookSums sums = LookAtClimbers(wanted);
  CAPTURE(sums.looks, sums.accepted, sums.right, sums.wrong, sums.part, sums.undecided);
  CHECK(sums.wrong == 0);
  CHECK(sums.right >= wanted);
  if (!testing::kSanitized) CHECK(sums.part == 0);  // a sanitizer's frame pointers end walks
  if (wanted >= 1'000'000) WARN(sums.looks << " looks, " << sums.accepted << " accepted, " << sums.right << " right");
}

TEST_CASE("whole stacks of looks hold all return addresses that the thread has", "[blocked_look][law]") {
  CheckLooks(2000);
}

TEST_CASE("a million whole stacks of looks hold all return addresses", "[.heavy][long_looks][law]") {
  const char* const looks = std::getenv("PERFKIT_LOOKS");
  CheckLooks(looks != nullptr ? std::strtoull(looks, nullptr, 10) : 1'000'000);
}

}  // namespace
}  // namespace perfkit::session
