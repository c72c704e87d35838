// The zones, frames and counters of a FrameCounter, beside a session's samples.
//
//   FrameRecording ──> changes of each thread ──> Label: the innermost zone of a sample, by its time
//                        └──> zones, frames, counters ──> AddTo: the tracks of the profile
//                                frames ──> FrameKeeper: what is kept, if a session keeps only slow frames
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfkit/profile_builder.h"
#include "src/count/frame/frame_recording.h"
#include "src/session/frame_keeper.h"
#include "src/session/frame_ranks.h"
#include "src/session/frame_texts.h"
#include "src/session/kept_times.h"
#include "src/session/open_gaps.h"
#include "src/session/thread_table.h"

namespace perfkit::session {

// Not thread-safe.
class ZoneTimeline {
 public:
  // The label of samples whose zone is not known.
  static constexpr std::string_view kUnknownZone = "[zone unknown]";

  // `max_bytes`: maximum size of what is kept. If it is exceeded, the builder's samples are labelled, and the older
  // half is forgotten. `keep`: which frames are kept, if not all: then what no frame keeps is dropped earlier, and
  // beyond `max_bytes` frames are given up. Without a recording (nullptr) there are no zones.
  ZoneTimeline(std::unique_ptr<count::FrameRecording> recording, ProfileBuilder& builder, ThreadTable& threads,
               uint32_t pid, size_t max_bytes, const std::optional<KeepFrames>& keep = std::nullopt);

  // Reads what has happened since the last call. `known_ns`: the thread table knows all threads that began until then.
  void Read(uint64_t known_ns);
  // Reads for the last time.
  void Stop(uint64_t now_ns);
  // A profile up to `to_ns` was made, and the next one begins at `from_ns`: forgets the zones and frames that ended
  // until `to_ns`, and the labels of earlier samples than `from_ns`. Requires that the session keeps everything.
  void Restart(uint64_t from_ns, uint64_t to_ns);

  // Returns the label, in the builder's strings, of samples that Label has not labelled yet.
  uint32_t unknown_label() { return builder_.String(kUnknownZone); }
  // Sets the labels of all samples that were taken before the last Read and after what is forgotten: a path as
  // "physics/solve", or 0 outside of all zones. Adds no threads.
  void Label(std::span<ProfileSample> samples);
  // Forgets the zones of threads that have become sums (ThreadTable::Retire).
  void Retire(std::span<const uint32_t> renamed);
  // Adds the zones, frames and counters from `from_ns` to `to_ns` to a copy of the builder's profile, and counts what
  // is missing. Call Label before.
  void AddTo(Profile& profile, uint64_t from_ns, uint64_t to_ns) const { AddTo(profile, from_ns, to_ns, Times()); }
  // As above, but only what is in `times`.
  void AddTo(Profile& profile, uint64_t from_ns, uint64_t to_ns, const KeptTimes& times) const;

  // Returns nullptr if the session keeps everything. The keeper also decides about samples: up to the time that it has
  // released, all samples outside of Times() may be dropped.
  FrameKeeper* keeper() { return keeping_ ? &keeping_->keeper : nullptr; }
  // Decides on the frames that ended until `until_ns`; UINT64_MAX: all, and there will be no more. Call Read before.
  // Calls on_slow with the frames that are over their budget or have a reason; only with some of them if there are too
  // many. Returns the number of the others.
  size_t Decide(uint64_t until_ns, absl::FunctionRef<void(const EndedFrame& frame)> on_slow);
  // Returns the times that are kept; all times if the session keeps everything.
  KeptTimes Times() const;
  // As FrameKeeper::TimesOf. Requires keeper().
  KeptTimes TimesOf(const EndedFrame& frame) const;
  // Returns the names of KeepFrames::worst_by that no frame had a number of.
  std::vector<std::string> UnusedRanks() const;
  // Returns for each of the first `count` threads the time from which none of its zones is forgotten, for a session
  // that keeps everything.
  std::vector<uint64_t> ZonesKnownFrom(size_t count) const;
  // Returns true if frames of this thread have ended. `index`: in Profile::threads.
  bool MarksFrames(uint32_t index) const {
    return std::ranges::any_of(threads_, [&](const Thread& one) { return one.index == index && one.marks_frames; });
  }
  // Returns the thread of a frame, in Profile::threads; KeptTimes::kAllThreads if it is not known yet.
  uint32_t ThreadOf(const EndedFrame& frame) const { return threads_[frame.thread].index; }
  // Returns how many changes were dropped to limit memory.
  uint64_t forgotten() const { return losses_.forgotten; }

 private:
  static constexpr uint32_t kNoThread = KeptTimes::kAllThreads;

  // Names and labels are indexes in texts_, because the builder renumbers its strings.
  struct Change {
    uint64_t ns = 0;
    uint32_t label = 0;  // from then on
  };
  struct OpenZone {
    uint64_t from_ns = 0;
    uint32_t name = 0, label = 0;
    bool abandoned = false;
  };
  struct Path {
    uint32_t name = 0, label = 0;  // 0: not seen yet
  };
  // One attachment of a thread.
  struct Thread {
    uint32_t tid = 0;
    uint32_t index = kNoThread;  // in Profile::threads
    uint64_t first_ns = UINT64_MAX, last_ns = 0;
    uint64_t known_from_ns = 0;   // earlier changes are forgotten
    uint64_t zones_known_ns = 0;  // end of the latest zone that is forgotten
    bool marks_frames = false;
    std::vector<Path> paths;  // by zone
    std::vector<OpenZone> open;
    std::vector<Change> changes;
  };
  struct Span {
    uint64_t from_ns = 0, to_ns = 0;
    uint32_t thread = 0;  // in threads_
    uint32_t name = 0;
  };
  struct FrameSpan {
    uint64_t from_ns = 0, to_ns = 0, number = 0;
    uint32_t thread = 0;
    uint16_t sequence_id = 0;
    bool is_over_budget = false, is_decided = false;
    std::string sequence, cause, reason, state;
    std::vector<uint64_t> numbers{};  // for each name of KeepFrames::worst_by
  };
  // The counts of one event in the frames of one sequence on one thread.
  struct Track {
    uint32_t thread = 0, name = 0;
    ProfileCounter counter;
  };

  struct Deciding {
    size_t frames = 0;  // the first frames in frames_ that are decided
    FrameTexts texts;   // of frames that are not decided
  };
  struct Losses {
    uint64_t forgotten = 0;  // zones and frames, to limit memory
    uint64_t of_ended = 0;   // those of threads that became part of a sum
    uint64_t records = 0;
    uint64_t since_ns = 0;  // where the profile after the last Restart begins
  };
  struct Keeping {
    FrameKeeper keeper;
    FrameRanks ranks;
    size_t thin_at_bytes = 0;
  };

  static constexpr uint32_t kUnknown = 1;  // in texts_
  static constexpr size_t kThinDivisor = 16;

  uint32_t Text(std::string_view text);
  size_t ThreadOf(const count::FrameEvent& event);
  void Add(const count::FrameEvent& event);
  void Enter(size_t thread, const count::FrameEvent& event);
  void Leave(size_t thread, uint64_t ns);
  void LeaveAll(size_t thread, uint64_t ns, uint32_t label);
  void AddFrame(size_t thread, const count::FrameEvent& event);
  void AddCause(size_t thread, const count::FrameEvent& event);
  void SetLabel(Thread& thread, uint64_t ns, uint32_t label);
  const Path& PathOf(Thread& thread, const count::FrameEvent& event);
  void FindIndexes(uint64_t known_ns);
  size_t Forget(size_t divisor);
  void ForgetZone(const Span& zone);
  // Forgets the first `count` changes of a thread, which must have more.
  static void ForgetChanges(Thread& thread, size_t count);
  void CountBytes();
  class Tracks;
  void AddFramesTo(Tracks& tracks) const;
  bool IsIn(const KeptTimes& times, const FrameSpan& frame) const;
  EndedFrame EndedOf(const FrameSpan& frame) const;
  std::string WorstByOf(const FrameSpan& frame) const;
  std::vector<uint64_t> NumbersOf(const Thread& thread, const count::FrameEvent& event);
  size_t BytesOfFrame() const { return sizeof(FrameSpan) + (keeping_ ? keeping_->ranks.size() * sizeof(uint64_t) : 0); }
  static FrameTextTarget TextsOf(FrameSpan& frame);
  void TakeTextsOfOthers();
  void ThinIfFull();
  void Thin();
  void MakeRoom();
  static std::optional<uint32_t> LabelAt(std::span<const Thread* const> threads, uint64_t ns);

  std::unique_ptr<count::FrameRecording> recording_;
  ProfileBuilder& builder_;
  ThreadTable& table_;
  const uint32_t pid_;
  const size_t max_bytes_;
  uint64_t read_until_ns_ = 0;
  uint64_t known_until_ns_ = UINT64_MAX;  // the last Read before another recording listened
  size_t bytes_ = 0;
  Losses losses_;
  std::vector<std::string> texts_{"", std::string(kUnknownZone)};
  std::map<std::string, uint32_t, std::less<>> text_indexes_{{texts_[kUnknown], kUnknown}};
  std::vector<Thread> threads_;
  std::vector<size_t> free_;  // in threads_
  std::map<uint64_t, size_t> by_serial_;
  std::vector<Span> zones_;
  std::vector<FrameSpan> frames_;
  Deciding deciding_;
  std::map<std::pair<uint64_t, size_t>, Track> tracks_;  // by thread and sequence, and event
  OpenGaps open_gaps_;
  std::optional<Keeping> keeping_;
};

}  // namespace perfkit::session
