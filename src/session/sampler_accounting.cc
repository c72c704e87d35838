// Adds a sampler's accounting to a profile's: sums, and a note for each decision and for each number that is only a
// lower bound.
#include "src/session/sampler_accounting.h"

#include <span>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "src/profile/accounting_sums.h"

namespace perfkit::session {
namespace {

std::string DescribeChange(const SamplerDecision& decision) {
  using What = SamplerDecision::What;
  if (decision.what == What::kSamples && decision.from == decision.to) return "no samples until the end";
  if (decision.what == What::kSamples) {
    return absl::StrFormat("one sample in %d, before: one in %d", decision.to, decision.from);
  }
  const std::string_view what = decision.what == What::kStack ? "stacks" : "bytes or calls of a stack";
  return absl::StrFormat("%s from %d to %d", what, decision.from, decision.to);
}

std::string DescribeDecision(const SamplerDecision& decision, uint64_t start_ns) {
  constexpr std::string_view kWhy[] = {"the CPU budget", "losses", "headroom",
                                       "a thread that did not advance between two signals"};
  const double ms = static_cast<double>(static_cast<int64_t>(decision.from_ns - start_ns)) / 1e6;
  return absl::StrFormat("%.1f ms after the start, because of %s: %s", ms, kWhy[static_cast<size_t>(decision.why)],
                         DescribeChange(decision));
}

}  // namespace

// Where losses are not counted, those that were not told yet filled a ring at least.
uint64_t LossesOf(const SamplerStats& stats) {
  uint64_t losses = stats.side_band_lost + stats.drains_of_full_rings;
  for (const auto& events : {std::span(stats.events), std::span(stats.full)}) {
    for (const EventAccounting& event : events) losses += event.lost + event.paused;
  }
  return losses;
}

void AddAccounting(Profile& profile, const SamplerStats& stats, uint64_t start_ns) {
  for (size_t i = 0; i < stats.events.size(); ++i) profile::Add(profile.events[i].accounting, stats.events[i]);
  ProfileAccounting& accounting = profile.accounting;
  accounting.side_band_lost += stats.side_band_lost;
  accounting.unattributed += stats.unattributed;
  accounting.own_cpu_ns += stats.own_cpu_ns;
  accounting.kernel_cpu_ns += stats.kernel_cpu_ns;
  for (const SamplerDecision& decision : stats.decisions)
    accounting.notes.push_back(DescribeDecision(decision, start_ns));
  if (stats.lost_is_lower_bound) {
    accounting.notes.emplace_back(
        "more samples may be lost than are counted: kernels before 6.0 do not count them all, nor do later ones beside "
        "followers");
  }
  if (stats.paused_is_lower_bound) {
    accounting.notes.emplace_back(
        "samples of a pause and those that a full ring lost could not be told apart: all are lost");
  }
  if (stats.threads_missed != 0) {
    accounting.notes.push_back(
        absl::StrFormat("%d threads were not sampled from their begin on: they ended before they "
                        "were attached, or got no ring at first",
                        stats.threads_missed));
  }
}

}  // namespace perfkit::session
