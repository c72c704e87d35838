// A program that is compiled for a sanitizer, with an installed perfkit that is not: its allocations are counted, and
// ThreadSanitizer sees its locks.
#include <perfkit/measure.h>
#include <perfkit/session.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

// Sanitizers end a program whose malloc fails, unless it asks for nullptr.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace {

void Keep(void* memory) {
  asm volatile("" : : "r"(memory) : "memory");  // No compiler removes the allocation.
  free(memory);
}

struct alignas(64) Line {
  Line() { asm volatile("" : : "r"(this) : "memory"); }
  char bytes[64];
};

volatile size_t g_too_large = SIZE_MAX / 4;

bool CountsAllocations() {
  const perfkit::Measurement measured =
      perfkit::Measure({perfkit::event::kAllocations, perfkit::event::kAllocatedBytes}, [] {
        void* aligned = nullptr;
        if (posix_memalign(&aligned, 64, 100) == 0) Keep(aligned);
        Keep(malloc(1000));
        Keep(malloc(g_too_large));  // An allocation without bytes.
        Keep(calloc(3, 7));
        Keep(realloc(nullptr, 500));
        Keep(reallocarray(nullptr, 5, 6));
        Keep(aligned_alloc(64, 128));
        int* const one = new int;
        asm volatile("" : : "r"(one) : "memory");
        delete one;
        delete new Line;
      });
  puts(measured.ToString().c_str());
  const auto is = [&](size_t cost, int64_t wanted) { return measured.costs.at(cost).values.at(0) == wanted; };
  return is(0, 9) && is(1, 100 + 1000 + 21 + 500 + 5 * 6 + 128 + 4 + 64);
}

// Two threads wait for each other's lock while a session records it. Returns false if it does not start.
bool RecordsLocks() {
  auto session = perfkit::Session::Start({.clock = perfkit::SessionClock::kWall});
  if (!session.ok()) return false;
  std::mutex mutex;
  int shared = 0;
  const auto add = [&] {
    for (int i = 0; i < 2000; ++i) {
      const std::scoped_lock lock(mutex);
      ++shared;
    }
  };
  std::thread one(add), other(add);
  one.join();
  other.join();
  return session->Stop().ok() && shared == 4000;
}

}  // namespace

int main() { return CountsAllocations() && RecordsLocks() ? 0 : 1; }
