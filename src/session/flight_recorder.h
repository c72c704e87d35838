// What the profiles of a flight recorder cover: since the last snapshot, at most the latest time that is asked for, and
// from when on the rings of all CPUs go back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "perfkit/profile.h"
#include "perfkit/sampler.h"

namespace perfkit::session {

// Not thread-safe.
class FlightRecorder {
 public:
  // `keep_ns`: how far profiles go back; 0: as far as the rings.
  explicit FlightRecorder(uint64_t keep_ns) : keep_ns_(keep_ns) {}

  void Start(uint64_t now_ns) { from_ns_ = whole_from_ns_ = now_ns; }
  // The rings are read next, up to `now_ns`.
  void EndAt(uint64_t now_ns) { cut_ns_ = keep_ns_ != 0 ? now_ns - std::min(now_ns, keep_ns_) : 0; }
  // Returns the time from which on the next profile has anything.
  uint64_t from_ns() const { return std::max(from_ns_, cut_ns_); }
  // Returns true for a sample that is older than keep_ns, and counts it: it is no part of the profile, as if it had
  // been overwritten.
  bool IsTooOld(const SamplerRecord& record, const SampleLayout& layout);
  // Sets what the profile covers. Removes what it does not cover from the accounting of its sampler.
  void Describe(Profile& profile, SamplerStats& stats);
  // A snapshot was made of all that was described last: the next profile begins after it.
  void Restart(const Sampler::Takeover& taken);

 private:
  const uint64_t keep_ns_;
  uint64_t cut_ns_ = 0;
  uint64_t from_ns_ = 0;                    // when the rings that are read began
  uint64_t whole_from_ns_ = 0;              // from then on all threads write to the rings that are read
  std::vector<EventAccounting> too_old_;    // since the last snapshot
  std::vector<EventAccounting> described_;  // of the sampler, at the last Describe
  std::vector<EventAccounting> earlier_;    // of the sampler, at the last snapshot
};

}  // namespace perfkit::session
