// Rings of our own, into which threads write the stacks that they have walked in the signals of their samples.
//
//   keys_     | tid | 0 | tid | tid |      found by the thread's number, claimed with one compare-and-swap
//                |
//   rings_    | begun | page: head, tail | frames |      one writer, which is that thread, in its handler
//                                |
//   data_     | records …        v       |               one reader, which is whoever drains: a RingReader, as of
//   others
//
// All of it is made at Open and stays: no handler allocates, locks, or uses thread-local storage. Memory that no thread
// has used costs address space only. A ring is given back when it is empty and its thread has ended, or has not been
// sampled for a second and others wait; a thread that comes back claims another. Where all are taken, a thread takes
// over that of one that has ended, with what is still in it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "perfkit/ring_reader.h"
#include "src/base/in_handler.h"
#include "src/sys/mapping.h"
#include "src/unwind/live_walker.h"

namespace perfkit::sample {

// One thread's. What is here is written by that thread, in its handler, unless it says otherwise.
struct alignas(64) StackRing {
  // Since when it is in use by its handler; 0: it is not. Read by the reader, which lets nothing overtake it.
  uint64_t begun_ns;
  uint64_t time_ns;            // of the record: read after begun_ns, and so never before what a reader has seen there
  uint64_t rest_until_ns;      // no walk before: LiveStackHandler
  uint64_t rest_until_cpu_ns;  // the same by the thread's CPU time, while it is watched
  uint64_t handler_ns;         // what handlers took so far; read by the reader
  uint64_t written;            // records so far
  uint32_t watched;            // walks that are still to be measured by CPU time
  uint32_t tid;
  // The reader's.
  uint64_t handler_ns_seen;
  bool ended;
  UserPage page;  // head and tail
  std::byte* data;
  StackFrame* frames;          // where it walks to,
  std::span<StackFrame> room;  // and how far; made here, because a handler may not even make a span: PERFKIT_IN_HANDLER
};

class StackRings {
 public:
  static constexpr size_t kDefaultBytes = 256 << 10, kMinBytes = 16 << 10;  // of a ring
  // Of samples, whose stacks fill a quarter of a ring when they are all of one thread.
  static constexpr size_t kWatermarkBytes = 8 << 10;

  struct Shape {
    size_t rings = 0;       // a power of two
    size_t ring_bytes = 0;  // a power of two
    uint32_t depth = 0;     // frames
  };

  // Nothing when there is not enough memory.
  static std::optional<StackRings> Make(const Shape& shape);

  PERFKIT_IN_HANDLER const Shape& shape() const { return shape_; }

  // For handlers. The ring of thread `tid`, which must be the calling one, as being in use since `now_ns`; claims one
  // for its first time. Null: all are taken. `nested`: it is in use already, by a handler that this one has
  // interrupted, and is not to be touched.
  StackRing* Enter(pid_t tid, uint64_t now_ns, bool& nested);
  // The same where Enter has found none: the ring of a thread that has ended, whose records stay in it. Looks at a few
  // rings only. Null: those are of threads that live.
  StackRing* EnterEnded(pid_t tid, uint64_t now_ns);
  void Leave(StackRing& ring);
  // Whether a record of `bytes` has room; and the end of those that were written, for the reader.
  bool HasRoom(const StackRing& ring, size_t bytes) const;
  static void Publish(StackRing& ring, uint64_t head);

  // For the reader, from here on. Whoever reads keeps `reader(i)` for ring i.
  std::vector<RingReader>& readers() { return readers_; }
  // When the oldest handler began that is still under way; UINT64_MAX: none is.
  uint64_t OldestUnderWay(uint64_t now_ns) const;
  // Thread `tid` has ended: its ring is given back once it is empty.
  void Ended(pid_t tid);
  // Gives back what can be. `scarce`: also rings of threads that were not sampled for a second.
  void GiveBack(bool scarce, uint64_t now_ns);
  // Walks take at most so many frames from now on; those under way, as many as they may.
  void Limit(uint32_t frames);
  // How many are taken.
  size_t taken() const;
  // What handlers took since the last call.
  uint64_t TakeHandlerNs();
  // What a reader was shown is its own to change: the record lies in the ring, or in its reader's scratch memory.
  static std::byte* Writable(const RawRecord& record) { return const_cast<std::byte*>(record.data); }

 private:
  StackRings() = default;
  size_t FindOrClaim(uint32_t tid);
  bool TryGiveBack(size_t i);

  Shape shape_;
  sys::Mapping memory_;
  uint32_t* keys_ = nullptr;
  StackRing* rings_ = nullptr;
  std::vector<RingReader> readers_;
  bool any_ended_ = false;
};

}  // namespace perfkit::sample
