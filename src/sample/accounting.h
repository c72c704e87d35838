// Counts where each sample of an event went, and when records were lost.
//
//   counted by the kernel = delivered + duplicates + lost + paused + malformed      (period 1; stopped and drained)
//
// `lost` and `paused` are the kernel's count for each event (PERF_FORMAT_LOST), which LossAccounting reads; LOST
// records give the times.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "perfkit/sampler_stats.h"

namespace perfkit::sample {

class Accounting {
 public:
  explicit Accounting(size_t events) : events_(events), missed_ns_(events) {}

  EventAccounting& event(size_t i) { return events_[i]; }
  const std::vector<EventAccounting>& events() const { return events_; }

  void Delivered(size_t event, uint64_t represents) {
    ++events_[event].delivered;
    events_[event].represented += represents;
  }
  // Clocks: time of samples that were taken but not delivered.
  void Missed(size_t event, uint64_t ns) { missed_ns_[event] += ns; }
  uint64_t missed_ns(size_t event) const { return missed_ns_[event]; }

  void AddLoss(const LossInterval& loss) { losses_[loss_count_++ % kLosses] = loss; }
  // Returns the kept intervals, oldest first.
  std::vector<LossInterval> Losses() const;
  uint64_t losses_forgotten() const { return loss_count_ > kLosses ? loss_count_ - kLosses : 0; }

  void AddDecision(const SamplerDecision& decision) { decisions_[decision_count_++ % kLosses] = decision; }
  std::vector<SamplerDecision> Decisions() const;
  uint64_t decisions_forgotten() const { return decision_count_ > kLosses ? decision_count_ - kLosses : 0; }

  // Writes all that belongs to no event to `stats`, and what is known of losses and decisions.
  void Fill(SamplerStats& stats) const;

  // Accounting that belongs to no event.
  uint64_t side_band_lost = 0, drains_of_full_rings = 0;
  uint64_t unattributed = 0;
  uint64_t late = 0, malformed_bytes = 0, overwritten_bytes = 0, own_cpu_ns = 0, kernel_cpu_ns = 0;
  uint64_t overwritten_until_ns = 0;
  uint64_t told_lost = 0;  // By LOST records: known at once, but incomplete.
  uint64_t decisions_refused = 0;
  bool paused_is_lower_bound = false;

 private:
  static constexpr uint64_t kLosses = 256;
  std::vector<EventAccounting> events_;
  std::vector<uint64_t> missed_ns_;
  std::array<LossInterval, kLosses> losses_{};
  uint64_t loss_count_ = 0;
  std::array<SamplerDecision, kLosses> decisions_{};
  uint64_t decision_count_ = 0;
};

}  // namespace perfkit::sample
