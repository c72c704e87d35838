// What is left out of a profile is removed from the accounting, too, as if it had been overwritten: so the samples of a
// profile are always what its accounting says.
#include "src/session/flight_recorder.h"

#include "absl/strings/str_format.h"
#include "src/profile/accounting_sums.h"

namespace perfkit::session {
namespace {

// Returns what has been accounted for since `before`. Members that are not sums stay as they are.
EventAccounting Since(EventAccounting now, const EventAccounting& before) {
  for (const auto sum : profile::kEventSums) now.*sum -= std::min(now.*sum, before.*sum);
  for (const auto sum : profile::kStackSums) now.stacks.*sum -= std::min(now.stacks.*sum, before.stacks.*sum);
  return now;
}

}  // namespace

bool FlightRecorder::IsTooOld(const SamplerRecord& record, const SampleLayout& layout) {
  if (cut_ns_ == 0 || record.type != static_cast<uint32_t>(RecordType::kSample)) return false;
  if (layout.TimeOf(record).value_or(UINT64_MAX) >= cut_ns_) return false;
  if (record.event == SamplerRecord::kNoEvent || record.full_stack) return true;
  if (too_old_.size() <= record.event) too_old_.resize(record.event + 1);
  EventAccounting& accounting = too_old_[record.event];
  ++accounting.delivered;
  accounting.represented += record.weight;
  accounting.foreign += record.foreign ? 1 : 0;
  return true;
}

void FlightRecorder::Describe(Profile& profile, SamplerStats& stats) {
  described_ = stats.events;
  earlier_.resize(stats.events.size());
  too_old_.resize(stats.events.size());
  uint64_t left_out = 0;
  for (size_t i = 0; i < stats.events.size(); ++i) {
    const bool is_clock = profile.events[i].unit == ProfileUnit::kNanoseconds;
    stats.events[i] = Since(Since(stats.events[i], earlier_[i]), too_old_[i]);
    if (is_clock) stats.events[i].unsampled_ns += too_old_[i].represented;
    left_out += too_old_[i].delivered;
  }
  profile.from_ns = from_ns();
  profile.accounting.whole_from_ns = std::max({profile.from_ns, whole_from_ns_, stats.overwritten_until_ns});
  std::vector<std::string>& notes = profile.accounting.notes;
  if (left_out != 0) {
    notes.push_back(absl::StrFormat("left out, and unsampled: %d samples from before the last %g ms "
                                    "(SessionOptions::keep_last)",
                                    left_out, static_cast<double>(keep_ns_) / 1e6));
  }
  if (stats.overwritten_until_ns <= profile.from_ns) return;
  notes.push_back(absl::StrFormat("whole for its last %.3f s (ProfileAccounting::whole_from_ns): earlier samples of "
                                  "some CPUs were overwritten",
                                  static_cast<double>(profile.to_ns - profile.accounting.whole_from_ns) / 1e9));
}

void FlightRecorder::Restart(const Sampler::Takeover& taken) {
  from_ns_ = taken.from_ns;
  whole_from_ns_ = taken.to_ns;
  earlier_ = described_;
  too_old_.clear();
}

}  // namespace perfkit::session
