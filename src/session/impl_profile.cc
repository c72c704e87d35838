// The profiles that a session makes: of all that it has sampled, or of what the rings of a flight recorder hold.
#include <string>
#include <utility>

#include "src/profile/unique_strings.h"
#include "src/session/cpu_time.h"
#include "src/session/impl.h"
#include "src/session/sampler_accounting.h"
#include "src/sys/clock.h"

namespace perfkit::session {
void Impl::AddRecorded(const SamplerRecord& record) {
  if (!flight_.IsTooOld(record, sampler_->layout())) aggregator_.Add(record, sampler_->layout());
}

// Once sampling has ended, each call returns the same, except for the CPU time of the call itself.
Profile Impl::MakeProfile(uint64_t to_ns) {
  const bool is_last = phase_ != Phase::kRunning;
  SamplerStats stats = sampler_->stats();
  Profile profile;
  const uint64_t naming_before_ns = aggregator_.naming_cpu_ns(), own_before_ns = own_cpu_ns_;
  bool progress_threw = false;
  {
    const CpuTime cpu_time(own_cpu_ns_);
    const auto on_named = [&](double done) {
      const bool is_step = StepNaming() || done >= 1;
      if (options_.progress && is_step && !progress_threw) progress_threw = !options_.progress(done);
    };
    aggregator_.ReadTimelines();
    if (options_.mode == RingMode::kOverwrite) aggregator_.CutTracks(flight_.from_ns());
    aggregator_.DecideFrames(is_last ? UINT64_MAX : at_.drained_ns - kDrainedAfterNs, on_named);
    profile = aggregator_.MakeProfile(to_ns, is_last, on_named);
    profile::MakeStringsUnique(profile);  // Each timeline adds its own.
  }
  profile.from_ns = at_.started_ns, profile.to_ns = to_ns;
  profile.realtime_offset_ns = sys::RealtimeOffsetNs();
  if (options_.mode == RingMode::kOverwrite) flight_.Describe(profile, stats);
  profile.accounting.own_cpu_ns += own_cpu_ns_ + keeper_.cpu_ns();
  // All of making a profile counts, not just what the aggregator has counted in it.
  aggregator_.set_naming_cpu_ns(naming_before_ns + own_cpu_ns_ - own_before_ns);
  profile.accounting.naming_cpu_ns = aggregator_.naming_cpu_ns();
  profile.accounting.notes.insert(profile.accounting.notes.begin(), notes_.begin(), notes_.end());
  if (progress_threw) profile.accounting.notes.emplace_back("progress threw an exception, and was not called again");
  AddAccounting(profile, stats, at_.started_ns);
  reductions_.Note(aggregator_.Reduced(), at_.drained_ns);
  for (std::string& note : reductions_.Notes()) profile.accounting.notes.push_back(std::move(note));
  return profile;
}

absl::StatusOr<Profile> Impl::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (absl::Status status = CheckUsable(); !status.ok()) return status;
    HaltLocked();
    phase_ = Phase::kTaken;
  }
  waiter_->Wake();
  // Without the lock: the session's thread may be waiting for it.
  thread_.Join();  // one caller gets here
  const std::lock_guard<std::mutex> lock(mutex_);
  Profile profile = MakeProfile(at_.stopped_ns);
  sampler_.reset();
  aggregator_.CloseFiles();
  return profile;
}

absl::StatusOr<Profile> Impl::Snapshot() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (absl::Status status = CheckUsable(); !status.ok()) return status;
  if (phase_ != Phase::kRunning) return MakeProfile(at_.stopped_ns);
  FindRunning();
  if (options_.mode != RingMode::kOverwrite) {
    Drain();
    return MakeProfile(sys::ClockNs(CLOCK_MONOTONIC));
  }
  const absl::StatusOr<Sampler::Takeover> taken = sampler_->Snapshot();
  if (!taken.ok()) return taken.status();
  flight_.EndAt(taken->to_ns);
  Drain();
  kept_.Replay([&](const SamplerRecord& record) { AddRecorded(record); });
  CheckStolenTimes();
  Profile profile = MakeProfile(taken->to_ns);
  flight_.Restart(*taken);
  aggregator_.Restart(taken->from_ns, taken->to_ns);
  return profile;
}

}  // namespace perfkit::session
