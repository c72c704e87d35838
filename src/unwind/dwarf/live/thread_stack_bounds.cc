// Finds thread stacks among the mappings of the process. A handler can't read /proc: it asks for its thread's bounds by
// writing into a slot, and the next maintenance answers all requests. Until then each page is checked by a system call.
// A mapping counts as a stack only if it has a guard page, and holds the thread's control block, which glibc and musl
// put at the stack's upper end; the main thread's is "[stack]".
#include "src/unwind/dwarf/live/thread_stack_bounds.h"

#include <algorithm>
#include <optional>
#include <utility>
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

// Acquire pairs with the releases in Learn: if a reader sees its tid both before and after, the bounds between are that
// thread's.
PERFKIT_IN_HANDLER uint64_t ThreadStackBounds::EndAbove(uint64_t sp, uint32_t tid) {
  const auto thread = reinterpret_cast<uint64_t>(__builtin_thread_pointer());
  Slot& slot = slots_[base::Mix(thread) >> (64 - kBits)];
  if (slot.tid.load(std::memory_order_acquire) == tid && slot.thread.load(std::memory_order_acquire) == thread) {
    const uint64_t begin = slot.begin.load(std::memory_order_acquire), end = slot.end.load(std::memory_order_acquire);
    if (sp - begin < end - begin && slot.tid.load(std::memory_order_relaxed) == tid) return end;
  }
  if ((slot.requested.load(std::memory_order_relaxed) & ~kMain) == thread &&
      slot.requested_tid.load(std::memory_order_relaxed) == tid) {
    return 0;
  }
  slot.requested_tid.store(tid, std::memory_order_relaxed);
  slot.requested_sp.store(sp, std::memory_order_relaxed);
  // Release pairs with the acquire in Wants, so the request is complete. If two threads make requests at once, one may
  // name the stack of one thread and the control block of the other. They are not in one guarded mapping, and the stack
  // is not the main thread's, so such a request is dropped. Bounds for the control block of one thread and the tid of
  // the other belong to no thread.
  slot.requested.store(thread | (sys::IsMainThread() ? kMain : 0), std::memory_order_release);
  requested_.store(true, std::memory_order_relaxed);
  return 0;
}

bool ThreadStackBounds::Wants() {
  if (!backoff_.IsOver(requested_)) return false;
  for (Slot& slot : slots_) {
    slot.taken.thread = slot.requested.exchange(0, std::memory_order_acquire);
    slot.taken.tid = slot.requested_tid.load(std::memory_order_relaxed);
    slot.taken.sp = slot.requested_sp.load(std::memory_order_relaxed);
  }
  return true;
}

void ThreadStackBounds::Learn(std::string_view maps) {
  const std::vector<Mapping> mappings = ReadableMappings(maps);
  bool any = false;
  for (Slot& slot : slots_) {
    const Request request = std::exchange(slot.taken, {});
    const uint64_t thread = request.thread & ~kMain;
    const Mapping* const map =
        base::LastAt(mappings.data(), mappings.size(), request.sp, [](const Mapping& each) { return each.begin; });
    const bool is_main = request.thread != thread;
    const uint64_t end = thread == 0 || map == nullptr ? 0 : EndOfStack(*map, request.sp, thread, is_main);
    if (end == 0) continue;
    any = true;
    slot.tid.store(0, std::memory_order_release);
    slot.thread.store(thread, std::memory_order_release);
    slot.begin.store(map->begin, std::memory_order_release);
    slot.end.store(end, std::memory_order_release);
    slot.tid.store(request.tid, std::memory_order_release);
  }
  backoff_.Found(any);
}

}  // namespace perfkit::unwind
