// Claims and gives back rings. keys_ is an open hash table of thread ids; handlers search and claim without a lock, the
// reader gives back. The two sides can meet at one ring: a handler enters it while the reader takes it away. Each
// announces itself first (begun_ns, or the key kClosing) and checks the other afterwards, with sequentially consistent
// accesses, so that at least one of them sees the other and withdraws. Records themselves go through the page's head
// and tail, as in the kernel's rings.
#include "src/sample/stack_rings.h"

#include <algorithm>
#include <utility>

#include "src/sys/handler_calls.h"
#include "src/sys/own_memory.h"

namespace perfkit::sample {
namespace {

// Values of keys_ that are not thread ids: never used, given back, being given back.
constexpr uint32_t kNever = 0, kGivenBack = UINT32_MAX, kClosing = UINT32_MAX - 1;
constexpr size_t kNone = SIZE_MAX;
constexpr uint64_t kLongNs = 1'000'000'000;
// As many rings as a sampler of one thread has: these are populated before the first sample.
constexpr size_t kFew = 2;

// Makes the pages that begin in [begin, end) present and writable, by writing what is there. If that fails, a handler
// has written to the page meanwhile. Not by __atomic_fetch_or with 0: clang makes a load of that, for which the kernel
// maps a page that can't be written.
void Touch(std::byte* begin, const std::byte* end) {
  for (std::byte* at = begin; at < end; at += sys::kMinPage) {
    auto* const word = reinterpret_cast<uint64_t*>(at);
    uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    __atomic_compare_exchange_n(word, &seen, seen, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
}

size_t RoundUp(size_t bytes) { return (bytes + sys::kMinPage - 1) / sys::kMinPage * sys::kMinPage; }

PERFKIT_IN_HANDLER size_t Home(uint32_t tid) { return tid * 0x9e37'79b9u >> 7; }

PERFKIT_IN_HANDLER bool Exchange(uint32_t& key, uint32_t from, uint32_t to) {
  return __atomic_compare_exchange_n(&key, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

}  // namespace

std::optional<StackRings> StackRings::Make(const Shape& shape) {
  const size_t keys = RoundUp(shape.rings * sizeof(uint32_t)), rings = RoundUp(shape.rings * sizeof(StackRing));
  const size_t frames = shape.rings * RoundUp(shape.depth * sizeof(StackFrame));
  std::optional<sys::Mapping> memory = sys::Mapping::Anonymous(keys + rings + frames + shape.rings * shape.ring_bytes);
  if (!memory) return std::nullopt;
  StackRings made;
  made.shape_ = shape;
  made.memory_ = *std::move(memory);
  std::byte* const base = made.memory_.data();
  made.keys_ = reinterpret_cast<uint32_t*>(base);
  made.rings_ = reinterpret_cast<StackRing*>(base + keys);
  for (size_t i = 0; i < shape.rings; ++i) {
    StackRing& ring = made.rings_[i];
    ring.frames = reinterpret_cast<StackFrame*>(base + keys + rings + i * (frames / shape.rings));
    ring.room = {ring.frames, shape.depth};
    ring.outer = shape.outer;
    ring.data = base + keys + rings + frames + i * shape.ring_bytes;
    made.readers_.emplace_back(&ring.page, Bytes(ring.data, shape.ring_bytes));
    if (shape.rings <= kFew) made.PopulateAhead(ring);
  }
  return made;
}

// Searches from the thread's home slot up to the first slot that was never used, and claims the first free one.
PERFKIT_IN_HANDLER size_t StackRings::FindOrClaim(uint32_t tid) {
  const size_t mask = shape_.rings - 1;
  const size_t home = Home(tid);
  while (true) {
    size_t free = kNone;
    for (size_t i = 0; i <= mask; ++i) {
      const size_t at = (home + i) & mask;
      const uint32_t key = __atomic_load_n(&keys_[at], __ATOMIC_RELAXED);
      if (key == tid) return at;
      if (free == kNone && (key == kNever || key == kGivenBack)) free = at;
      if (key == kNever) break;
    }
    if (free == kNone) return kNone;
    uint32_t expected = __atomic_load_n(&keys_[free], __ATOMIC_RELAXED);
    // Acquire pairs with the release in TryGiveBack: the records of the ring's last thread have been read.
    if ((expected == kNever || expected == kGivenBack) && Exchange(keys_[free], expected, tid)) return free;
  }
}

// The handler marks the ring as in use, and then checks that it still belongs to its thread. TryGiveBack takes the ring
// away, and then checks that it is not in use. All four accesses are sequentially consistent, so at least one side sees
// the other.
PERFKIT_IN_HANDLER StackRing* StackRings::Enter(pid_t tid, uint64_t now_ns, bool& nested) {
  const auto key = static_cast<uint32_t>(tid);
  nested = false;
  while (true) {
    const size_t at = FindOrClaim(key);
    if (at == kNone) return nullptr;
    StackRing& ring = rings_[at];
    // A handler that a longjmp left long ago does not count.
    nested = ring.begun_ns != 0 && now_ns - ring.begun_ns < kLongNs;
    if (nested) return &ring;
    __atomic_store_n(&ring.begun_ns, now_ns, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&keys_[at], __ATOMIC_SEQ_CST) == key) {
      ring.tid = key;
      return &ring;
    }
    __atomic_store_n(&ring.begun_ns, 0, __ATOMIC_RELEASE);
  }
}

// As in TryGiveBack, the ring is first taken away and then checked: a new thread with the ended one's tid may be in it.
PERFKIT_IN_HANDLER StackRing* StackRings::EnterEnded(pid_t tid, uint64_t now_ns) {
  constexpr size_t kMaxLooks = 16;
  const auto key = static_cast<uint32_t>(tid);
  for (size_t i = 0; i < kMaxLooks && i < shape_.rings; ++i) {
    const size_t at = (Home(key) + i) & (shape_.rings - 1);
    const uint32_t owner = __atomic_load_n(&keys_[at], __ATOMIC_RELAXED);
    if (owner == kNever || owner >= kClosing || sys::HandlerThreadExists(static_cast<pid_t>(owner))) continue;
    if (!Exchange(keys_[at], owner, kClosing)) continue;
    StackRing& ring = rings_[at];
    if (__atomic_load_n(&ring.begun_ns, __ATOMIC_SEQ_CST) != 0) {
      __atomic_store_n(&keys_[at], owner, __ATOMIC_RELEASE);
      continue;
    }
    ring.rest_until_ns = ring.watched = 0;
    ring.tid = key;
    __atomic_store_n(&ring.begun_ns, now_ns, __ATOMIC_SEQ_CST);
    __atomic_store_n(&keys_[at], key, __ATOMIC_RELEASE);
    return &ring;
  }
  return nullptr;
}

// Release pairs with the acquire in OldestUnderWay: a reader that sees the end of the handler sees its record.
PERFKIT_IN_HANDLER void StackRings::Leave(StackRing& ring) { __atomic_store_n(&ring.begun_ns, 0, __ATOMIC_RELEASE); }

// Acquire pairs with the release of data_tail (RingReader::PublishTail): the records there have been read.
PERFKIT_IN_HANDLER bool StackRings::HasRoom(const StackRing& ring, size_t bytes) const {
  return ring.page.data_head - __atomic_load_n(&ring.page.data_tail, __ATOMIC_ACQUIRE) + bytes <= shape_.ring_bytes;
}

// Release pairs with the acquire of data_head in RingReader: the record is complete.
PERFKIT_IN_HANDLER void StackRings::Publish(StackRing& ring, uint64_t head) {
  __atomic_store_n(&ring.page.data_head, head, __ATOMIC_RELEASE);
}

uint64_t StackRings::OldestUnderWay(uint64_t now_ns) const {
  uint64_t oldest = UINT64_MAX;
  for (size_t i = 0; i < shape_.rings; ++i) {
    if (__atomic_load_n(&keys_[i], __ATOMIC_RELAXED) == kNever) continue;
    const uint64_t begun = __atomic_load_n(&rings_[i].begun_ns, __ATOMIC_ACQUIRE);
    if (begun != 0 && now_ns - begun < kLongNs) oldest = std::min(oldest, begun);
  }
  return oldest;
}

void StackRings::Ended(pid_t tid) {
  for (size_t i = 0; i < shape_.rings; ++i) {
    if (__atomic_load_n(&keys_[i], __ATOMIC_RELAXED) != static_cast<uint32_t>(tid)) continue;
    rings_[i].ended = any_ended_ = true;
  }
}

bool StackRings::TryGiveBack(size_t i) {
  StackRing& ring = rings_[i];
  const uint32_t key = __atomic_load_n(&keys_[i], __ATOMIC_RELAXED);
  if (key == kNever || key == kGivenBack || !Exchange(keys_[i], key, kClosing)) return false;
  // From here on no handler can enter: Enter finds another key than its own, and leaves again.
  const bool in_use = __atomic_load_n(&ring.begun_ns, __ATOMIC_SEQ_CST) != 0;
  const bool empty = LoadShared(ring.page.data_head) == ring.page.data_tail;
  if (!in_use && empty) {
    ring.ended = false;
    ring.rest_until_ns = ring.watched = 0;
  }
  __atomic_store_n(&keys_[i], in_use || !empty ? key : kGivenBack, __ATOMIC_RELEASE);
  return !in_use && empty;
}

void StackRings::GiveBack(bool scarce, uint64_t now_ns) {
  if (!any_ended_ && !scarce) return;
  any_ended_ = false;
  for (size_t i = 0; i < shape_.rings; ++i) {
    StackRing& ring = rings_[i];
    // rest_until_ns is not before the end of its last walk.
    const bool idle = scarce && now_ns - ring.rest_until_ns > kLongNs && ring.rest_until_ns < now_ns;
    if ((ring.ended || idle) && !TryGiveBack(i)) any_ended_ = any_ended_ || ring.ended;
  }
}

void StackRings::PopulateAhead() {
  for (size_t i = 0; i < shape_.rings; ++i) {
    const uint32_t key = __atomic_load_n(&keys_[i], __ATOMIC_RELAXED);
    if (key != kNever && key != kGivenBack) PopulateAhead(rings_[i]);
  }
}

void StackRings::PopulateAhead(StackRing& ring) {
  const uint64_t wanted = std::min<uint64_t>(LoadShared(ring.page.data_head) + kAhead, shape_.ring_bytes);
  if (ring.present >= wanted) return;
  // Few stacks have more frames than the first page holds.
  if (ring.present == 0)
    Touch(reinterpret_cast<std::byte*>(ring.frames), reinterpret_cast<std::byte*>(ring.frames + 1));
  Touch(ring.data + ring.present, ring.data + wanted);
  ring.present = RoundUp(wanted);
}

// Only the size of the span changes, which is one word.
void StackRings::Limit(uint32_t frames) {
  for (size_t i = 0; i < shape_.rings; ++i) {
    rings_[i].outer = frames < shape_.depth ? 0 : shape_.outer;
    rings_[i].room = {rings_[i].frames, std::min(frames, shape_.depth)};
  }
}

size_t StackRings::taken() const {
  size_t taken = 0;
  for (size_t i = 0; i < shape_.rings; ++i) {
    const uint32_t key = __atomic_load_n(&keys_[i], __ATOMIC_RELAXED);
    taken += key != kNever && key != kGivenBack;
  }
  return taken;
}

uint64_t StackRings::TakeHandlerNs() {
  uint64_t taken = 0;
  for (size_t i = 0; i < shape_.rings; ++i) {
    if (__atomic_load_n(&keys_[i], __ATOMIC_RELAXED) == kNever) continue;
    const uint64_t now = __atomic_load_n(&rings_[i].handler_ns, __ATOMIC_RELAXED);
    taken += now - std::exchange(rings_[i].handler_ns_seen, now);
  }
  return taken;
}

}  // namespace perfkit::sample
