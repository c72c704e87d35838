// The records between the rings and the profile: bounds what waits until its dump is unwound.
//
//   rings ──> add                                     as long as that is fast
//   rings ──> [record][record][without dump] ──> add  if it is slow: the rings are emptied once a millisecond
//
// A ring of 512 KiB has room for 31 dumps, i.e. for some milliseconds at short intervals. If the rings were emptied
// only as fast as their stacks are unwound, the kernel would drop samples, and with them records of context switches.
// So what waits is copied. When too much waits, samples lose their dump: they still count, without callers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/functional/function_ref.h"
#include "perfkit/sample.h"
#include "perfkit/sampler_record.h"

namespace perfkit::session {

// Not thread-safe.
class UnwindBacklog {
 public:
  using Visit = absl::FunctionRef<void(const SamplerRecord& record)>;
  // Empties the rings: calls visit for each of their records.
  using Read = absl::FunctionRef<void(Visit visit)>;
  // Takes a record. `dump_dropped`: a sample whose dump was dropped, because too much waits.
  using Add = absl::FunctionRef<void(const SamplerRecord& record, bool dump_dropped)>;

  // `has_dumps`: samples have dumps, so adding them may be slow. `max_bytes`: room for what waits; dumps may take half.
  UnwindBacklog(bool has_dumps, size_t max_bytes) : has_dumps_(has_dumps), max_bytes_(max_bytes) {}

  // Empties the rings, and adds all records in their order, also those that wait. The dumps of samples that come while
  // this has taken more than kPatienceNs of CPU time are dropped. After twice that time it reads no more, so it ends
  // also if records come faster than they can be added. Adds to `own_cpu_ns` the CPU time of adding outside of
  // `empty_rings`.
  void Drain(const SampleLayout& layout, Read empty_rings, Add add, uint64_t& own_cpu_ns);
  // Empties the rings, and adds nothing: for callers that can't take records. Does nothing if there is no room.
  void Keep(const SampleLayout& layout, Read empty_rings);

  size_t bytes() const { return bytes_; }

 private:
  static constexpr uint64_t kSliceNs = 1'000'000;      // from one time at which the rings are emptied to the next
  static constexpr uint64_t kPatienceNs = 50'000'000;  // an ordinary dump takes some 6 us

  struct Waiting {
    SamplerRecord record;
    std::vector<std::byte> bytes;
    bool dump_dropped = false;
  };

  void Empty(const SampleLayout& layout, Read empty_rings, Add add, uint64_t& own_cpu_ns);
  void Push(const SamplerRecord& record, const SampleLayout& layout);
  void AddFront(Add add);

  const bool has_dumps_;
  const size_t max_bytes_;
  std::deque<Waiting> waiting_;  // oldest first
  size_t bytes_ = 0;             // of `waiting_`
  bool is_late_ = false;         // no more dumps are taken
};

}  // namespace perfkit::session
