// Decides which frames are kept: those over their budget, those with a reason, the longest, those with the largest
// numbers of KeepFrames::worst_by, and random references.
//
//   frames of a kind   |----|----|--------|----|----|- - -     under way: may still be slow
//                           before  slow       |<--- hold: what is earlier can be released
//
// A pure state machine: it knows the times of frames, not what happened in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "perfkit/keep_frames.h"
#include "src/session/kept_times.h"

namespace perfkit::session {

// Maximum gap between two successive frames, because times of records are exact only to some nanoseconds.
inline constexpr uint64_t kFrameRoundingNs = 1000;

// A frame that has ended.
struct EndedFrame {
  uint32_t thread = 0;    // the caller's number
  uint32_t sequence = 0;  // FrameId::index
  uint64_t from_ns = 0, to_ns = 0;
  bool is_over_budget = false, has_reason = false;
  std::vector<uint64_t> numbers{};  // for each name of KeepFrames::worst_by

  bool is_slow() const { return is_over_budget || has_reason; }
  uint64_t duration_ns() const { return to_ns - from_ns; }
};

// Not thread-safe.
class FrameKeeper {
 public:
  explicit FrameKeeper(KeepFrames options) : options_(std::move(options)) {}
  // Sets the time from which everything is recorded. Frames that began earlier are no references.
  void SetStart(uint64_t start_ns) { start_ns_ = start_ns; }

  // Decides on a frame. Requires the frames of each thread and sequence in order of time.
  void Add(const EndedFrame& frame);
  // To be called when a thread has ended. Its last frames may be added later.
  void EndThread(uint32_t thread);
  // Forgets a thread, with all that was kept of its frames. The kept ones count as dropped.
  void Forget(uint32_t thread);

  // To be called when all frames that ended until `until_ns` have been added. UINT64_MAX: there will be no more.
  void DecideUntil(uint64_t until_ns) { decided_ns_ = until_ns; }
  // Returns the time until which everything outside of Times() may be dropped. Frames that began earlier can't be kept
  // from now on.
  uint64_t Release();
  // Releases up to a time whose frames are still under way, if there is no room for them.
  void ReleaseUntil(uint64_t until_ns);
  uint64_t released_ns() const { return released_ns_; }
  // Drops half of the kept frames, short ones without a reason first, and half of the references of each kind, whose
  // maximum is from then on the number that is left. Returns false if there was nothing to drop.
  bool DropHalf();

  bool IsReference(const EndedFrame& frame) const;
  // Returns for which names of KeepFrames::worst_by the frame is kept: bit i for name i.
  uint64_t WorstBy(const EndedFrame& frame) const;
  // Returns the times of what is kept, and all that is not released. `index_of` returns a thread's index in
  // Profile::threads.
  KeptTimes Times(absl::FunctionRef<uint32_t(uint32_t thread)> index_of) const;
  // Returns the times of a slow frame, of those before it if it is kept, and of the references of its kind; none if the
  // frame is released.
  KeptTimes TimesOf(const EndedFrame& frame, absl::FunctionRef<uint32_t(uint32_t thread)> index_of) const;

  // Number of frames that were to be kept, but were dropped: for want of room, by Forget, or as they began too early.
  uint64_t dropped() const { return dropped_; }

 private:
  struct Kept {
    EndedFrame frame;
    uint64_t kept_from_ns = 0;  // the begin of the frames before it
    uint64_t worst_by = 0;      // bit i: it is among those with the largest number i
  };
  struct Kind {
    std::deque<uint64_t> before;         // begins of the latest frames, at most options_.before
    uint64_t end_ns = 0;                 // of the latest frame
    std::vector<Kept> kept;              // the longest first
    std::vector<uint64_t> to_beat;       // what number i of a frame must exceed for it to be kept
    std::vector<EndedFrame> references;  // in any order
    size_t max_references = SIZE_MAX;
    uint64_t seen = 0;
  };
  using KindKey = std::pair<uint32_t, uint32_t>;  // thread and sequence

  void AddReference(Kind& kind, const EndedFrame& frame);
  bool IsLongest(const Kind& kind, const EndedFrame& frame) const;
  uint64_t WouldBeWorstBy(const Kind& kind, const EndedFrame& frame) const;
  void KeepWorstBy(Kind& kind, size_t number) const;
  void Keep(Kind& kind, Kept kept);
  void DropOne(Kind& kind);
  uint64_t Random();

  const KeepFrames options_;
  std::map<KindKey, Kind> kinds_;
  std::set<uint32_t> ended_;  // threads
  uint64_t start_ns_ = 0, decided_ns_ = 0, released_ns_ = 0;
  uint64_t dropped_ = 0;
  uint64_t random_ = 0x9e3779b97f4a7c15;  // any but 0
};

}  // namespace perfkit::session
