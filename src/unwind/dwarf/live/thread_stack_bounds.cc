// Finds thread stacks among the mappings of the process. A handler can't read /proc: it asks for its thread's bounds by
// writing into a slot, and Learn answers all requests at the next maintenance. Until then each page is checked by a
// system call. A mapping counts as a stack only if it has a guard page, and holds the thread's control block, which
// glibc and musl put at the stack's upper end; the main thread's is "[stack]".
#include "src/unwind/dwarf/live/thread_stack_bounds.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "src/base/last_at.h"
#include "src/base/mix.h"
#include "src/base/text.h"
#include "src/proc/maps.h"
#include "src/sys/own_memory.h"

namespace perfkit::unwind {
namespace {

struct Mapping {
  uint64_t begin, end;
  bool is_main_stack;
  bool is_guarded;  // The mapping below it is not accessible.
};

// Returns the mappings by address, in the kernel's order.
std::vector<Mapping> ReadableMappings(std::string_view maps) {
  std::vector<Mapping> found;
  uint64_t guard_end = 0;
  base::ForEachPiece(maps, '\n', [&](std::string_view line) {
    const std::optional<proc::MapLine> map = proc::ParseMapLine(line);
    if (!map) return;
    if (map->readable) found.push_back({map->begin, map->end, map->path == "[stack]", map->begin == guard_end});
    guard_end = map->readable || map->writable || map->executable ? 0 : map->end;
  });
  return found;
}

// Returns the end of the stack that contains `sp`, for the thread with that control block; 0 if it is not the thread's
// own.
uint64_t EndOfStack(const Mapping& map, uint64_t sp, uint64_t thread, bool is_main) {
  if (sp < map.begin || sp >= map.end) return 0;
  if (is_main) return map.is_main_stack ? map.end : 0;
  if (!map.is_guarded || thread < sp || thread >= map.end) return 0;
  return std::min(map.end, sys::PageOf(thread) + sys::kMinPage);
}

}  // namespace

// Acquire pairs with the releases in Learn: if a reader sees its thread both before and after, the bounds between are
// that thread's.
PERFKIT_IN_HANDLER uint64_t ThreadStackBounds::EndAbove(uint64_t sp) {
  const auto thread = reinterpret_cast<uint64_t>(__builtin_thread_pointer());
  Slot& slot = slots_[base::Mix(thread) >> (64 - kBits)];
  if (slot.thread.load(std::memory_order_acquire) == thread) {
    const uint64_t begin = slot.begin.load(std::memory_order_acquire), end = slot.end.load(std::memory_order_acquire);
    if (sp - begin < end - begin && slot.thread.load(std::memory_order_relaxed) == thread) return end;
  }
  if ((slot.requested.load(std::memory_order_relaxed) & ~kMain) == thread) return 0;
  slot.requested_sp.store(sp, std::memory_order_relaxed);
  // Release pairs with the acquire in Learn, so the request is complete. If two threads make requests at once, one may
  // name the stack of one thread and the control block of the other. They are not in one guarded mapping, and the stack
  // is not the main thread's, so such a request is dropped.
  slot.requested.store(thread | (sys::IsMainThread() ? kMain : 0), std::memory_order_release);
  requested_.store(true, std::memory_order_relaxed);
  return 0;
}

void ThreadStackBounds::Learn(std::string_view maps) {
  const std::vector<Mapping> mappings = ReadableMappings(maps);
  bool any = false;
  for (Slot& slot : slots_) {
    const uint64_t request = slot.requested.exchange(0, std::memory_order_acquire), thread = request & ~kMain;
    const uint64_t sp = slot.requested_sp.load(std::memory_order_relaxed);
    const Mapping* const map =
        base::LastAt(mappings.data(), mappings.size(), sp, [](const Mapping& each) { return each.begin; });
    const uint64_t end = thread == 0 || map == nullptr ? 0 : EndOfStack(*map, sp, thread, request != thread);
    if (end == 0) continue;
    any = true;
    slot.thread.store(0, std::memory_order_release);
    slot.begin.store(map->begin, std::memory_order_release);
    slot.end.store(end, std::memory_order_release);
    slot.thread.store(thread, std::memory_order_release);
  }
  backoff_.Found(any);
}

}  // namespace perfkit::unwind
