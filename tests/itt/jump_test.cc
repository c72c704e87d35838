// Signal handlers that leave the collector by siglongjmp. The signal is a fault of the collector itself, on a name that
// it may not read, so that it comes at one place: inside of a begin or an end. Or a reading of the counters jumps, as a
// handler that interrupts it does.
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <optional>
#include <thread>

#include "tests/itt/collecting.h"
#include "tests/itt/zones.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::itt {
namespace {

thread_local sigjmp_buf t_jump;

void Jump(int) { siglongjmp(t_jump, 1); }

// Calls `call` far below the calling function on the stack.
template <class Call>
[[gnu::noinline]] void Deeper(Call call) {
  void* const space = __builtin_alloca(16 << 10);  // No array: AddressSanitizer may have it elsewhere.
  call();
  asm volatile("" : : "r"(space) : "memory");
}

// Returns after a jump out of `call`.
template <class Call>
void JumpOutOf(Call call) {
  if (sigsetjmp(t_jump, 1) != 0) return;
  Deeper(call);
  FAIL("it has not jumped");
}

// As long as it lives, `handler` gets faults: by default, it leaves what has faulted.
class Faults {
 public:
  explicit Faults(void (*handler)(int) = Jump, int flags = 0) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigaction(SIGSEGV, &action, &before_);
  }
  ~Faults() { sigaction(SIGSEGV, &before_, nullptr); }
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

 private:
  struct sigaction before_ {};
};

// A domain and a handle that cannot be read until Permit.
struct Unreadable {
  Domain domain;
  StringHandle handle;

  static Unreadable& New() {
    return *static_cast<Unreadable*>(mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  void Permit(const char* text) {
    mprotect(this, kSize, PROT_READ | PROT_WRITE);
    handle.text = text;
  }

 private:
  static constexpr size_t kSize = 4096;
};

TEST_CASE("itt collector: tasks are counted again after a handler has left a begin or an end", "[itt]") {
  if (testing::kHandlersUnseen) SKIP_TEST("ThreadSanitizer does not see handlers");
  FrameCounter frames({.events = {"page-faults"}});
  Collecting collecting(frames);
  Unreadable& unreadable = Unreadable::New();
  {
    const Faults faults;
    Begin(g_work);
    JumpOutOf([&] { Begin(unreadable.handle); });
    Deeper([] { Deeper([] { Tasks(5); }); });  // This far down, it may be the handler.
    CHECK(collecting.uncounted().in_handler == 5);
    Tasks(3);
    CHECK(collecting.uncounted().jumped == 2);  // "work", and the one that was begun in it.
    Begin(g_work);
    JumpOutOf([&] { End(unreadable.domain); });
    End();
    CHECK(collecting.uncounted().stray_ends == 1);
    Tasks(3);
  }
  collecting.Stop();
  frames.Mark();
  CHECK(Zones(frames).Calls("app: work") == 6);
  CHECK(collecting.uncounted().in_handler == 5);
  CHECK(collecting.uncounted().jumped == 4);
  CHECK(collecting.uncounted().cut + collecting.uncounted().unended == 0);
}

std::atomic<bool> g_read_jumps{false};

ssize_t ReadOrJump(int fd, void* buffer, size_t size) {
  if (g_read_jumps.exchange(false)) siglongjmp(t_jump, 1);
  return sys::kLinux.read(fd, buffer, size);
}

// A FrameCounter whose next zone can be interrupted where it reads the counters.
class Interrupted {
 public:
  Interrupted() {
    fake_.below().read = ReadOrJump;
    frames.emplace(FrameOptions{.events = {"page-faults"}, .only_path = ReadPath::kGroupRead});
    collecting.emplace(*frames);
    Tasks(1);
  }
  template <class Call>
  void JumpOutOf(Call call) {
    g_read_jumps = true;
    itt::JumpOutOf(call);
  }

 private:
  testing::FakeKernel fake_;

 public:
  std::optional<FrameCounter> frames;
  std::optional<Collecting> collecting;
};

TEST_CASE("itt collector: whatever was interrupted of a task, the end does not count it again", "[itt][law]") {
  Interrupted interrupted;
  if (!interrupted.frames->reason(0).empty()) SKIP_TEST(std::string(interrupted.frames->reason(0)));
  SECTION("its begin") {
    interrupted.JumpOutOf([] { Begin(g_work); });
  }
  SECTION("its end") {
    Begin(g_work);
    interrupted.JumpOutOf([] { End(); });
  }
  interrupted.collecting->Stop();
  CHECK(interrupted.collecting->uncounted().unended == 0);
  CHECK(interrupted.collecting->uncounted().jumped == 2);
  interrupted.frames->Mark();
  CHECK(Zones(*interrupted.frames).Calls("app: work") == 1);
}

// A zone whose begin was not read would have all that the thread has ever counted.
TEST_CASE("itt collector: zones are in order, and add up, after a jump out of the FrameCounter", "[itt][law]") {
  Interrupted interrupted;
  if (!interrupted.frames->reason(0).empty()) SKIP_TEST(std::string(interrupted.frames->reason(0)));
  testing::FreshPages pages(1000);
  pages.Touch(0, 1000);
  SECTION("in a begin") {
    interrupted.JumpOutOf([] { Begin(g_inner); });
  }
  SECTION("in an end") {
    Begin(g_inner);
    interrupted.JumpOutOf([] { End(); });
  }
  for (int i = 0; i < 3; ++i) {
    Tasks(1);
    interrupted.frames->Mark();
  }
  CHECK(interrupted.collecting->uncounted().jumped == 2);
  const Zones zones(*interrupted.frames);
  CHECK(zones.Calls("app: work") == 4);
  CHECK(zones.Calls("app: inner") == 0);
  CHECK(zones.Total("app: work") + zones.Total("app: inner") < 1000);
}

TEST_CASE("itt collector: the end does not wait for ever for a thread that a handler has taken away", "[itt]") {
  if (testing::kHandlersUnseen) SKIP_TEST("ThreadSanitizer does not see handlers");
  const bool sleeps = GENERATE(false, true);
  std::optional<FrameCounter> frames(FrameOptions{.events = {"page-faults"}});
  std::optional<Collecting> collecting(*frames);
  const Faults faults;
  std::atomic<int> turn{0};  // 1: it has jumped. 2: collection has ended. 3: it had a task meanwhile. 4: another began.
  std::thread other([&] {
    Begin(g_work);
    JumpOutOf([] { Begin(Unreadable::New().handle); });
    turn = 1;
    while (turn < 2) {
      if (sleeps) turn.wait(1);
    }
    Tasks(1);  // Nothing.
    turn = 3;
    while (turn < 4) std::this_thread::yield();
    Tasks(7);
  });
  while (turn < 1) std::this_thread::yield();
  collecting->Stop(100'000'000);
  CHECK(collecting->uncounted().unended == 1);
  CHECK(collecting->uncounted().jumped == 1);
  frames.reset();
  turn = 2;
  turn.notify_one();
  while (turn < 3) std::this_thread::yield();
  FrameCounter second({.events = {"page-faults"}});
  collecting.emplace(second);
  turn = 4;
  other.join();
  collecting->Stop();
  CHECK(Zones(second).Calls("app: work") == 7);
}

Unreadable* g_unreadable = nullptr;

void CountAndPermit(int) {
  Begin(g_inner);
  End();
  g_unreadable->Permit("late");
}

TEST_CASE("itt collector: a handler that returns has not jumped, wherever its stack is", "[itt]") {
  if (testing::kHandlersUnseen) SKIP_TEST("ThreadSanitizer does not see handlers");
  std::array<char, 128 << 10> above;  // The frames of calls lie below it.
  const stack_t alternate{.ss_sp = above.data(), .ss_flags = 0, .ss_size = above.size()};
  const int flags = GENERATE(0, SA_ONSTACK);
  FrameCounter frames({.events = {"page-faults"}});
  const Collecting collecting(frames);
  Begin(g_inner);
  End();
  g_unreadable = &Unreadable::New();
  stack_t before{};
  REQUIRE(sigaltstack(&alternate, &before) == 0);
  {
    const Faults faults(CountAndPermit, flags);
    Begin(g_unreadable->handle);
    End();
  }
  sigaltstack(&before, nullptr);
  frames.Mark();
  CHECK(Zones(frames).Calls("app: late") == 1);
  CHECK(Zones(frames).Calls("app: inner") == 1);
  CHECK(collecting.uncounted().in_handler == 1);
  CHECK(collecting.uncounted().jumped == 0);
}

}  // namespace
}  // namespace perfkit::itt
