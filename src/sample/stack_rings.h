// Rings in this process's own memory, into which threads write the stacks that they walk in the signals of their
// samples.
//
//   keys_     | tid | 0 | tid | tid |      searched by the thread's id, claimed with one compare-and-swap
//                |
//   rings_    | begun | page: head, tail | frames |      one writer: that thread, in its handler
//                                |
//   data_     | records …        v       |               one reader: the thread that drains, with a RingReader
//
// All memory is mapped at Open and stays: no handler allocates, locks or uses thread-local storage. Memory that no
// thread has used costs address space only, except for a sampler with two rings. The reader makes pages present before
// a handler writes them (PopulateAhead): a page fault takes as long as to write some stacks, and counters of the
// sampled thread would count it. A ring is given back when it is empty and its thread has ended, or when it is empty,
// was not sampled for a second, and other threads lack a ring. A thread that is sampled again claims another ring. If
// all are taken, a thread takes over the ring of a thread that has ended, including its records.
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

// The ring of one thread. The thread's handler writes all members, unless stated otherwise.
struct alignas(64) StackRing {
  // Start of the handler that uses the ring; 0 means that none does. The reader delivers nothing that is later.
  uint64_t begun_ns;
  uint64_t time_ns;  // Time of the record. Read after begun_ns, so it is never earlier than what the reader saw there.
  uint64_t rest_until_ns;      // No walk begins before this time: LiveStackHandler.
  uint64_t rest_until_cpu_ns;  // The same by the thread's CPU time, while it is watched.
  uint64_t handler_ns;         // Time of all handlers so far; read by the reader.
  uint64_t written;            // Number of records so far.
  uint32_t watched;            // Number of walks that are still to be measured by CPU time.
  uint32_t tid;
  // Members that the reader writes.
  uint64_t handler_ns_seen;  // handler_ns at the last TakeHandlerNs.
  uint64_t present;          // Bytes of `data` that are present, at least.
  bool ended;                // The thread has ended.
  UserPage page;             // data_head and data_tail.
  std::byte* data;
  StackFrame* frames;  // The buffer of walks.
  // The part of it that walks may use. Constructed here, because handlers may not call std::span's constructor:
  // PERFKIT_IN_HANDLER.
  std::span<StackFrame> room;
  uint32_t outer;  // The part of `room` that is for the outermost calls.
};

// Enter to Publish are for handlers: async-signal-safe. All others are for the reader: not thread-safe.
class StackRings {
 public:
  static constexpr size_t kDefaultBytes = 256 << 10, kMinBytes = 16 << 10;  // Of one ring.
  // Watermark of the rings of samples: if all samples are of one thread, their stacks fill a quarter of its ring by
  // then.
  static constexpr size_t kWatermarkBytes = 8 << 10;
  // How much of a ring PopulateAhead keeps ready: what fills until the watermark is reached.
  static constexpr size_t kAhead = 64 << 10;

  struct Shape {
    size_t rings = 0;       // A power of two.
    size_t ring_bytes = 0;  // A power of two.
    uint32_t depth = 0;     // Maximum number of frames.
    uint32_t outer = 0;     // Those of them that are for the outermost calls.
  };

  // Returns nullopt if there is not enough memory; errno says why.
  static std::optional<StackRings> Make(const Shape& shape);

  PERFKIT_IN_HANDLER const Shape& shape() const { return shape_; }

  // Returns the ring of thread `tid`, which must be the calling one, and marks it as in use since `now_ns`. Claims a
  // ring at the first call. Returns nullptr if all are taken. Sets `nested` if an interrupted handler already uses the
  // ring; then it must not be touched.
  StackRing* Enter(pid_t tid, uint64_t now_ns, bool& nested);
  // As above, after Enter has found no ring: takes over the ring of a thread that has ended; its records stay in it.
  // Looks at some rings only. Returns nullptr if their threads exist.
  StackRing* EnterEnded(pid_t tid, uint64_t now_ns);
  // Marks the ring as not in use.
  void Leave(StackRing& ring);
  // Returns true if a record of `bytes` fits; and publishes the end of the written records to the reader.
  bool HasRoom(const StackRing& ring, size_t bytes) const;
  static void Publish(StackRing& ring, uint64_t head);

  // For the reader: element i reads ring i.
  std::vector<RingReader>& readers() { return readers_; }
  // Returns the start of the oldest handler that is running; UINT64_MAX if there is none.
  uint64_t OldestUnderWay(uint64_t now_ns) const;
  // Marks the ring of thread `tid` as ended: it is given back once it is empty.
  void Ended(pid_t tid);
  // Gives back rings. `scarce`: also rings of threads that were not sampled for a second.
  void GiveBack(bool scarce, uint64_t now_ns);
  // Makes the pages present that the handlers of taken rings write next. Each page takes some microseconds, once.
  void PopulateAhead();
  // Sets the maximum number of frames of later walks. If it is less than Shape::depth, walks end there: they don't look
  // for the outermost calls, so that they take less time.
  void Limit(uint32_t frames);
  // Returns the number of rings that are taken.
  size_t taken() const;
  // Returns the time of handlers since the last call, in nanoseconds.
  uint64_t TakeHandlerNs();
  // Returns writable memory of a record that a reader returned: it is in the ring, or in the reader's copy.
  static std::byte* Writable(const RawRecord& record) { return const_cast<std::byte*>(record.data); }

 private:
  StackRings() = default;
  // Returns the index of the thread's ring, or kNone.
  size_t FindOrClaim(uint32_t tid);
  bool TryGiveBack(size_t i);
  void PopulateAhead(StackRing& ring);

  Shape shape_;
  sys::Mapping memory_;
  uint32_t* keys_ = nullptr;
  StackRing* rings_ = nullptr;
  std::vector<RingReader> readers_;
  bool any_ended_ = false;
};

}  // namespace perfkit::sample
