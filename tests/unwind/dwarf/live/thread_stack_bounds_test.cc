// The memory that counts as a thread's own stack is mapped, and ends at the thread's control block.
#include "src/unwind/dwarf/live/thread_stack_bounds.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "src/proc/maps.h"
#include "src/sys/own_memory.h"

namespace perfkit::unwind {
namespace {

uint64_t Here() { return reinterpret_cast<uint64_t>(__builtin_frame_address(0)); }
uint64_t Block() { return reinterpret_cast<uint64_t>(__builtin_thread_pointer()); }

std::string Maps() {
  absl::StatusOr<std::string> maps = proc::ReadMaps(getpid());
  REQUIRE(maps.ok());
  return *std::move(maps);
}

// Pages from this frame to `end` that cannot be read.
int Holes(uint64_t end) {
  int holes = 0;
  for (uint64_t page = sys::PageOf(Here()); page < end; page += sys::kMinPage) {
    holes += sys::CanRead(page) ? 0 : 1;
  }
  return holes;
}

TEST_CASE("a thread's stack is known once it was asked for and looked up", "[thread_stack_bounds]") {
  constexpr int kThreads = 8;
  ThreadStackBounds stacks;
  std::vector<std::thread> threads;
  std::atomic<int> known{0}, done{0};
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const uint64_t sp = Here();
      uint64_t end = 0;
      for (int round = 0; round < 1'000'000 && end == 0; ++round, std::this_thread::yield())
        end = stacks.EndAbove(sp, sys::ThisTid());
      const bool is_whole = end > Block() && end <= Block() + sys::kMinPage && Holes(end) == 0;
      // What lies above, on another stack, or far below is not this thread's.
      const bool is_own =
          stacks.EndAbove(end, sys::ThisTid()) == 0 && stacks.EndAbove(sp - (uint64_t{1} << 30), sys::ThisTid()) == 0;
      known += is_whole && is_own ? 1 : 0;
      ++done;
    });
  }
  while (done < kThreads) {
    if (stacks.Wants()) stacks.Learn(Maps());
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(known == kThreads);
}

TEST_CASE("the main thread's stack ends where the kernel says", "[thread_stack_bounds]") {
  ThreadStackBounds stacks;
  CHECK(stacks.EndAbove(Here(), sys::ThisTid()) == 0);
  REQUIRE(stacks.Wants());
  stacks.Learn(Maps());
  const uint64_t end = stacks.EndAbove(Here(), sys::ThisTid());
  REQUIRE(end > Here());
  CHECK(Holes(end) == 0);
  CHECK(stacks.EndAbove(end, sys::ThisTid()) == 0);
  CHECK(stacks.EndAbove(0, sys::ThisTid()) == 0);
}

// Its mapping may be joined with the one that has the main thread's block, as they are alike and side by side.
void CheckFiber(bool guarded) {
  constexpr size_t kBytes = 64 << 10;
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  if (guarded) REQUIRE(mprotect(memory, sys::kMinPage, PROT_NONE) == 0);
  const uint64_t fiber = reinterpret_cast<uint64_t>(memory) + kBytes / 2;
  ThreadStackBounds stacks;
  int looked = 0;
  for (int i = 0; i < 5000; ++i) {
    REQUIRE(stacks.EndAbove(fiber, sys::ThisTid()) == 0);
    if (!stacks.Wants()) continue;
    ++looked;
    stacks.Learn(Maps());
  }
  CHECK(looked >= 10);
  CHECK(looked <= 20);
  munmap(memory, kBytes);
}

TEST_CASE("a stack that a program has made for itself is never known, and seldom looked for", "[thread_stack_bounds]") {
  CheckFiber(false);
  CheckFiber(true);
  std::thread([] {
    CheckFiber(false);
    CheckFiber(true);
  }).join();
}

// Runs `function` on a thread whose stack is the last `bytes` before `end`, with a guard page below it.
void OnStack(char* end, size_t bytes, const std::function<void()>& function) {
  pthread_attr_t attributes;
  REQUIRE(mprotect(end - bytes - sys::kMinPage, sys::kMinPage, PROT_NONE) == 0);
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstack(&attributes, end - bytes, bytes) == 0);
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  // Nothing is checked while the thread runs, which has checks of its own.
  const int created = pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&function));
  const int joined = created == 0 ? pthread_join(thread, nullptr) : created;
  REQUIRE(created == 0);
  REQUIRE(joined == 0);
  pthread_attr_destroy(&attributes);
}

TEST_CASE("the bounds of a thread that ended are not those of a later thread", "[thread_stack_bounds]") {
  constexpr size_t kBytes = 8 << 20, kSmall = 1 << 20, kFar = 4 << 20;
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  char* const end = static_cast<char*>(memory) + kBytes;
  ThreadStackBounds stacks;
  uint64_t first = 0, second = 0, later_end = 0;
  bool known = false, known_anew = false;
  OnStack(end, kBytes - sys::kMinPage, [&] {
    first = Block();
    (void)stacks.EndAbove(Here(), sys::ThisTid());
    if (stacks.Wants()) stacks.Learn(Maps());
    known = stacks.EndAbove(Here(), sys::ThisTid()) != 0 && stacks.EndAbove(Here() - kFar, sys::ThisTid()) != 0;
  });
  OnStack(end, kSmall, [&] {
    second = Block();
    (void)stacks.EndAbove(Here(), sys::ThisTid());
    later_end = stacks.EndAbove(Here() - kFar, sys::ThisTid());
    if (stacks.Wants()) stacks.Learn(Maps());
    known_anew = stacks.EndAbove(Here(), sys::ThisTid()) != 0 && stacks.EndAbove(Here() - kFar, sys::ThisTid()) == 0;
  });
  CHECK(first == second);
  CHECK(known);
  CHECK(later_end == 0);
  CHECK(known_anew);
  munmap(memory, kBytes);
}

TEST_CASE("a request is answered only by mappings that were read after it", "[thread_stack_bounds]") {
  ThreadStackBounds stacks;
  std::thread([&] { (void)stacks.EndAbove(Here(), sys::ThisTid()); }).join();
  REQUIRE(stacks.Wants());
  CHECK(stacks.EndAbove(Here(), sys::ThisTid()) == 0);
  stacks.Learn(Maps());
  CHECK(stacks.EndAbove(Here(), sys::ThisTid()) == 0);
}

TEST_CASE("maps that make no sense teach nothing", "[thread_stack_bounds]") {
  ThreadStackBounds stacks;
  const char* const texts[] = {"", "\n\n", "x", "0-ffffffffffffffff ---p 0 00:00 0 [stack]\n",
                               "ffff-0 rw-p 0 00:00 0 [stack]\n"};
  for (const char* const text : texts) {
    CHECK(stacks.EndAbove(Here(), sys::ThisTid()) == 0);
    stacks.Learn(text);
    CHECK(stacks.EndAbove(Here(), sys::ThisTid()) == 0);
  }
}

}  // namespace
}  // namespace perfkit::unwind
