// The weight of an event's samples, by the time of the sample: rings may still hold samples from before a change of the
// rate.
//
//   weight    1            10              5
//   ──────────┴─────────────┴───────────────> time       the event is off when a change gets its time, so no
//         until_ns      until_ns                          sample has exactly that time
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace perfkit::sample {

class SampleWeight {
 public:
  SampleWeight() = default;
  explicit SampleWeight(uint64_t weight) : now_(weight) {}

  // Returns the weight of a sample that is taken now.
  uint64_t now() const { return now_; }

  // Returns the weight of a sample that was taken at `time_ns`.
  uint64_t At(uint64_t time_ns) const { return earlier_.empty() ? now_ : Earlier(time_ns); }

  // Returns the smallest weight of samples from `time_ns` on.
  uint64_t LeastSince(uint64_t time_ns) const {
    uint64_t least = now_;
    for (const Span& span : earlier_) least = span.until_ns >= time_ns ? std::min(least, span.weight) : least;
    return least;
  }

  // Samples after `time_ns` have `weight`.
  void Change(uint64_t time_ns, uint64_t weight) {
    if (weight == now_) return;
    if (!earlier_.empty()) time_ns = std::max(time_ns, earlier_.back().until_ns);  // The clock was set back.
    earlier_.push_back({time_ns, now_});
    now_ = weight;
  }

  // Forgets the weights of samples up to `time_ns`, which have all been read.
  void Forget(uint64_t time_ns) {
    std::erase_if(earlier_, [&](const Span& span) { return span.until_ns <= time_ns; });
  }

 private:
  struct Span {
    uint64_t until_ns = 0;
    uint64_t weight = 0;
  };

  uint64_t Earlier(uint64_t time_ns) const {
    const auto span = std::ranges::lower_bound(earlier_, time_ns, {}, &Span::until_ns);
    return span != earlier_.end() ? span->weight : now_;
  }

  uint64_t now_ = 0;
  std::vector<Span> earlier_;  // Oldest first; empty unless the rate has changed since the last drain.
};

}  // namespace perfkit::sample
