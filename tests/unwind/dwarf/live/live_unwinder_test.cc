// Live stacks of this very program, against the C library's own backtrace, and from impossible registers.
#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "perfkit/live_unwinder.h"
#include "src/unwind/dwarf/live/live_cache.h"
#include "src/unwind/dwarf/live/live_tables.h"
#include "src/unwind/machine.h"
#include "tests/support/allocations.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"
#include "tests/unwind/dwarf/live/stack_ends.h"

namespace perfkit {
namespace {

struct LiveLook {
  UnwoundStack stack;
  std::vector<StackFrame> frames;
  std::vector<uint64_t> expected;  // by backtrace, from the function on that looked
};

LiveLook* live_look = nullptr;
LiveUnwinder* live_unwinder = nullptr;

// Both from here; the two calls return to two places in this function.
[[gnu::noinline]] void LookHere() {
  LiveLook& look = *live_look;
  look.frames.resize(300);
  look.stack = live_unwinder->CurrentStack(look.frames);
  look.frames.resize(look.stack.frames);
  void* calls[300];
  const int count = backtrace(calls, 300);
  for (int i = 1; i < count; ++i) look.expected.push_back(reinterpret_cast<uint64_t>(calls[i]));
  asm volatile("" ::: "memory");
}

[[gnu::noinline]] int Fall(int depth) {
  volatile char room[50] = {};
  if (depth == 0) {
    LookHere();
    return 0;
  }
  return Fall(depth - 1) + room[depth % 50];
}

int LookWhileSorting(const void* a, const void* b) {
  if (live_look->frames.empty()) LookHere();
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

void LookInHandler(int) { LookHere(); }

class LiveFixture {
 public:
  LiveFixture() {
    live_look = &look_;
    live_unwinder = &unwinder_;
  }
  ~LiveFixture() { live_unwinder = nullptr; }

  // Whether the stack is backtrace's. That one says -1 of signals: what was interrupted is one later.
  void CheckEqual(size_t least) {
    INFO(StackEndName(look_.stack.end));
    CHECK(look_.stack.complete());
    CHECK(look_.stack.guesses == 0);
    std::vector<uint64_t> found;
    for (const StackFrame& frame : look_.frames) found.push_back(frame.pc);
    REQUIRE(found.size() >= least);
    found.erase(found.begin());
    CHECK(found == look_.expected);
    look_ = {};
  }

  LiveUnwinder& unwinder() { return unwinder_; }
  LiveLook& look() { return look_; }

 private:
  LiveUnwinder unwinder_;
  LiveLook look_;
};

TEST_CASE_METHOD(LiveFixture, "the current stack is what backtrace says", "[live]") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer has a backtrace of its own");
  for (const int depth : {0, 1, 10, 200}) {
    Fall(depth);
    CheckEqual(static_cast<size_t>(depth) + 3);
  }
  int numbers[100] = {3, 2, 1};
  qsort(numbers, 100, sizeof(int), LookWhileSorting);
  CheckEqual(5);
  std::thread([] { Fall(20); }).join();
  CheckEqual(22);
}

TEST_CASE_METHOD(LiveFixture, "out of handlers, also those with a stack of their own", "[live]") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer has a backtrace and alternate stacks of its own");
  std::vector<char> room(64 << 10);
  const stack_t stack{room.data(), 0, room.size()};
  stack_t before;
  sigaltstack(&stack, &before);
  for (const int flags : {0, SA_ONSTACK}) {
    struct sigaction action = {}, old = {};
    action.sa_handler = LookInHandler;
    action.sa_flags = flags;
    sigaction(SIGUSR1, &action, &old);
    raise(SIGUSR1);
    CheckEqual(5);
    sigaction(SIGUSR1, &old, nullptr);
  }
  sigaltstack(&before, nullptr);
}

TEST_CASE_METHOD(LiveFixture, "a thread's stack ends where the thread began", "[live]") {
  std::thread([] { Fall(3); }).join();
  CHECK(look().stack.complete());
  CHECK(look().frames.size() >= 6);
}

TEST_CASE_METHOD(LiveFixture, "no more frames than there is room for", "[live]") {
  for (const size_t room : {0, 1, 2}) {
    std::vector<StackFrame> frames(room);
    const UnwoundStack stack = unwinder().CurrentStack(frames);
    CHECK(stack.end == StackEnd::kLimit);
    CHECK(stack.frames == room);
  }
}

// Stacks of one place: of all frames, and of both ends.
struct EndsLook {
  size_t room = 0;
  uint32_t outer = 0;
  UnwoundStack whole_stack, ends_stack;
  std::vector<StackFrame> whole, ends;
};

[[gnu::noinline]] void LookAtEnds(EndsLook& look) {
  ucontext_t context;
  if (getcontext(&context) != 0) return;
  look.whole.resize(20'000);
  look.whole_stack = live_unwinder->InterruptedStack(&context, look.whole);
  look.ends.assign(look.room, {});
  look.ends_stack = live_unwinder->InterruptedStack(&context, look.ends, look.outer);
}

[[gnu::noinline]] int FallToEnds(int depth, EndsLook& look) {
  volatile char room[8] = {};
  if (depth == 0) {
    LookAtEnds(look);
    return 0;
  }
  return FallToEnds(depth - 1, look) + room[depth % 8];
}

// Its frame needs all registers: its CFA is not found by the frame pointer alone.
[[gnu::noinline]] int FallFromAligned(int depth, EndsLook& look) {
  alignas(64) volatile char room[64] = {};
  return FallToEnds(depth, look) + room[depth % 64];
}

TEST_CASE_METHOD(LiveFixture, "both ends of a deep stack are kept, and it is said what was left out", "[live]") {
  constexpr int kDepth = testing::kSanitized ? 2'000 : 10'000;
  EndsLook look;
  const auto fall = [&](size_t room, uint32_t outer, int depth) {
    look.room = room;
    look.outer = outer;
    std::thread([&] { FallFromAligned(depth, look); }).join();
  };
  for (const auto& [room, outer] : {std::pair<size_t, uint32_t>{100, 40}, {100, 1}, {64, 64}, {1000, 37}, {1, 1}}) {
    fall(room, outer, kDepth);
    INFO("room " << room << ", outer " << outer << ": " << StackEndName(look.ends_stack.end));
    REQUIRE(look.whole_stack.complete());
    REQUIRE(look.whole_stack.frames > kDepth);
    CHECK(look.ends_stack.end == StackEnd::kRoot);
    CHECK_FALSE(look.ends_stack.complete());
    REQUIRE(look.ends_stack.frames == room);
    CHECK(look.ends_stack.outer == outer);
    CHECK(look.ends_stack.omitted == look.whole_stack.frames - room);
    const auto whole = look.whole.begin();
    CHECK(std::equal(look.ends.begin(), look.ends.end() - outer, whole));
    CHECK(std::equal(look.ends.end() - outer, look.ends.end(), whole + look.whole_stack.frames - outer));
  }
  // One frame less than fits, all that fit, and one more.
  fall(1, 0, 50);
  CHECK((look.ends_stack.end == StackEnd::kLimit && look.ends_stack.omitted == 0 && look.ends_stack.outer == 0));
  const uint32_t frames = look.whole_stack.frames;
  for (const uint32_t room : {frames + 1, frames, frames - 1}) {
    fall(room, 10, 50);
    CHECK(look.ends_stack.omitted == frames - std::min(room, frames));
    CHECK(look.ends_stack.complete() == (room >= frames));
    CHECK(look.ends_stack.frames == std::min(room, frames));
  }
}

TEST_CASE_METHOD(LiveFixture, "errno is kept", "[live]") {
  std::vector<StackFrame> frames(10);
  errno = 77;
  (void)unwinder().CurrentStack(frames);
  CHECK(errno == 77);
}

TEST_CASE("the heap that tables are said to take is what they take", "[live]") {
  if (!testing::kCountsNew) SKIP_TEST("the sanitizer's own operator new is left alone");
  const int64_t before = testing::bytes_held;
  const LiveUnwinder fresh;
  const auto taken = static_cast<size_t>(testing::bytes_held - before), said = fresh.stats().table_bytes;
  INFO(said << " of " << taken << " bytes");
  CHECK(said <= taken);
  CHECK(100 * said >= 98 * taken);  // the allocator rounds up
}

TEST_CASE("nothing is known before Maintain, and all after it", "[live]") {
  unwind::LiveTables tables;  // what LiveStacks makes
  ucontext_t here;
  getcontext(&here);
  std::vector<StackFrame> frames(100);
  CHECK(tables.Walk(here, frames).frames >= 1);
  CHECK_FALSE(tables.Walk(here, frames).complete());
  CHECK(tables.stats().modules == 0);
  REQUIRE(tables.Maintain().ok());
  CHECK(tables.Walk(here, frames).complete());
  const LiveStats stats = tables.stats();
  CHECK(stats.modules > 3);
  CHECK(stats.table_bytes > 100'000);
  CHECK(stats.changes == 1);
  CHECK(stats.retired == 0);
  REQUIRE(tables.Maintain().ok());
  CHECK(tables.stats().changes == 1);
}

TEST_CASE("a LiveUnwinder moves", "[live]") {
  LiveUnwinder first;
  LiveUnwinder second(std::move(first));
  std::vector<StackFrame> frames(100);
  CHECK(second.CurrentStack(frames).complete());
}

TEST_CASE("an empty cache of rules has none for any address", "[live]") {
  const unwind::LiveCache cache;
  unwind::Rule rule;
  for (const uint64_t address : {uint64_t{0}, uint64_t{1}, uint64_t{0x7f12'3456'7890}, ~uint64_t{0}}) {
    CHECK_FALSE(cache.Find(address, rule));
  }
}

#if defined(__x86_64__)
// Before the first instruction of a function its return address is where sp points to. The byte before address 1 is at
// address 0, where no code is.
TEST_CASE_METHOD(LiveFixture, "return address 1 is no frame", "[live]") {
  uint64_t words[64] = {1};
  words[8] = reinterpret_cast<uint64_t>(&words[16]);  // a frame pointer that could be followed
  words[9] = reinterpret_cast<uint64_t>(&LookHere);
  ucontext_t context{};
  context.uc_mcontext.gregs[REG_RIP] = reinterpret_cast<greg_t>(&qsort);
  context.uc_mcontext.gregs[REG_RSP] = reinterpret_cast<greg_t>(words);
  context.uc_mcontext.gregs[REG_RBP] = reinterpret_cast<greg_t>(&words[8]);
  std::vector<StackFrame> frames(10);
  const UnwoundStack stack = unwinder().InterruptedStack(&context, frames);
  CHECK(stack.end == StackEnd::kNoMapping);
  CHECK(stack.frames == 1);
}

// Code that was made here: push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret.
TEST_CASE_METHOD(LiveFixture, "code that no module holds is known at the next Maintain, and followed as a guess",
                 "[live]") {
  constexpr unsigned char kCode[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(page, kCode, sizeof(kCode));
  mprotect(page, 4096, PROT_READ | PROT_EXEC);
  const auto call = reinterpret_cast<void (*)(void (*)())>(page);
  static UnwoundStack stack;
  static std::vector<StackFrame> frames(100);
  const auto walk = [] { stack = live_unwinder->CurrentStack(frames); };
  call(walk);
  CHECK(stack.end == StackEnd::kNoMapping);
  REQUIRE(unwinder().Maintain().ok());
  call(walk);
  CHECK(stack.complete());
  CHECK(stack.guesses == 1);
  munmap(page, 4096);
}
#endif

// Of the general registers that a context has, by their places in it.
void SetRegister(ucontext_t& context, unsigned number, uint64_t value) {
  std::memcpy(reinterpret_cast<char*>(&context) + unwind::ThisMachine::kContext[number], &value, sizeof(value));
}

// A stack of words that may mean anything, between two pages that cannot be read.
class WildStack {
 public:
  static constexpr size_t kSize = 64 << 10;

  WildStack() {
    memory_ = static_cast<char*>(mmap(nullptr, kSize + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory_ + 4096, kSize, PROT_READ | PROT_WRITE);
  }
  ~WildStack() { munmap(memory_, kSize + 8192); }
  WildStack(const WildStack&) = delete;
  WildStack& operator=(const WildStack&) = delete;

  uint64_t begin() const { return reinterpret_cast<uint64_t>(memory_ + 4096); }
  template <class Random>
  void Fill(Random& random, const std::vector<uint64_t>& code) {
    for (uint64_t at = begin(); at < begin() + kSize; at += 8) {
      const uint64_t kind = random() % 8;
      const uint64_t value = kind < 3   ? code[random() % code.size()] + random() % 64
                             : kind < 6 ? begin() - 512 + random() % (kSize + 1024)
                             : kind < 7 ? random()
                                        : random() % 1000;
      std::memcpy(reinterpret_cast<void*>(at), &value, sizeof(value));
    }
  }

 private:
  char* memory_;
};

TEST_CASE_METHOD(LiveFixture, "from registers that make no sense a walk ends, and reads nothing that is not there",
                 "[live]") {
  using unwind::ThisMachine;
  Fall(5);
  std::vector<uint64_t> code;
  for (const StackFrame& frame : look().frames) code.push_back(frame.pc);
  for (const auto& function : {&qsort}) code.push_back(reinterpret_cast<uint64_t>(function));
  WildStack stack;
  std::mt19937_64 random(7);
  std::vector<StackFrame> frames(64);
  size_t ends[testing::kStackEnds] = {};
  for (int round = 0; round < (testing::kSanitized ? 200 : 800); ++round) {
    stack.Fill(random, code);
    for (int i = 0; i < 20; ++i) {
      ucontext_t context{};
      for (unsigned number = 0; number < ThisMachine::kRegisters; ++number) {
        const bool near = random() % 3 != 0;
        SetRegister(context, number, near ? stack.begin() - 64 + random() % (WildStack::kSize + 128) : random());
      }
      if (random() % 8 != 0) SetRegister(context, ThisMachine::kPc, code[random() % code.size()]);
      const UnwoundStack found = unwinder().InterruptedStack(&context, frames);
      ++ends[static_cast<size_t>(found.end)];
      REQUIRE(found.frames <= frames.size());
    }
  }
  CHECK(ends[static_cast<size_t>(StackEnd::kNoMapping)] > 0);
  CHECK(ends[static_cast<size_t>(StackEnd::kUnreadable)] > 0);
  if (!testing::kSanitized) CHECK(ends[static_cast<size_t>(StackEnd::kNoInfo)] > 0);  // which takes more rounds
}

}  // namespace
}  // namespace perfkit
