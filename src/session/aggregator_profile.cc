// What becomes of the samples: merged when there are too many, handed out in batches, named, copied into a profile.
//
// The order matters: a label is found by a sample's time, so labels are set before samples are merged and lose it; a
// batch has each sample once, so samples are handed out before they are merged; and names are looked up only for what
// is handed out, since that reads files.
#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/proc/blocked_call.h"
#include "src/session/aggregator.h"
#include "src/session/drop_threads.h"
#include "src/session/merge_samples.h"
#include "src/session/whole_frames.h"

namespace perfkit::session {
namespace {

constexpr size_t kBytesAWait = sizeof(ProfileWait) + 192;  // with its text, in the profile and in the builder's index

}  // namespace

// Merged samples, one for each thread and stack, are kept until they take half of the room; then the stacks of the lightest
// are given up. Merging sorts all samples, so it must be rare: there is always room for a share of single ones beside the
// merged ones.
void Aggregator::MergeIfFull() {
  Profile& profile = builder_.profile();
  const size_t bytes = profile.samples.size() * sizeof(ProfileSample) + profile.waits.size() * kBytesAWait;
  // Half of memory_bytes is for samples. Stacks and locations have limits of their own (Aggregator's constructor).
  const size_t least = merged_bytes_ + std::max(merged_bytes_ / 2, options_.memory_bytes / 8);
  if (bytes <= std::max(options_.memory_bytes / 2, least)) return;
  if (zones_) zones_->Label(profile.samples);
  GiveBatch();
  MergeOldest(profile, preempted_wait_);
  MergeLightest(profile, options_.memory_bytes / 4 / sizeof(ProfileSample),
                [this](uint32_t stack) { return stacks_.InternOther(stack); });
  CountMerged();
}

void Aggregator::CountMerged() {
  builder_.CompactStrings();  // of waits and threads that are gone
  const Profile& profile = builder_.profile();
  // All were handed out before they were merged.
  given_.samples = profile.samples.size();
  const auto first_single = std::partition_point(profile.samples.begin(), profile.samples.end(),
                                                 [](const ProfileSample& sample) { return sample.merged(); });
  merged_bytes_ = static_cast<size_t>(first_single - profile.samples.begin()) * sizeof(ProfileSample);
}

void Aggregator::GiveBatch(const OnNamed& on_named) {
  std::vector<ProfileSample>& samples = builder_.profile().samples;
  if (zones_ && options_.on_batch) zones_->Label(std::span(samples).subspan(given_.samples));
  GiveBatch(std::span(samples).subspan(given_.samples), on_named);
  given_.samples = samples.size();
}

void Aggregator::GiveBatch(std::span<const ProfileSample> samples, const OnNamed& on_named) {
  // A callback that threw may have left its own data half done: it is not called again.
  if (samples.empty() || !options_.on_batch || given_.threw) return;
  Resolve(on_named);
  ++given_.batches;
  given_.threw = !options_.on_batch({builder_.profile(), samples});
}

// Samples whose stacks may still come. Until then they have none.
std::vector<ProfileSample> Aggregator::SamplesUnderWay() {
  std::vector<ProfileSample> samples;
  matcher_.ForEach([&](const PendingSample& pending) { samples.push_back(Complete(pending, {})); });
  return samples;
}

uint64_t Aggregator::InOtherAddresses(std::span<const ProfileSample> samples) const {
  uint64_t sum = 0;
  for (const ProfileSample& sample : samples) {
    if (sample.stack != ProfileStack::kRoot && stacks_.EndsInOther(sample.stack)) sum += sample.samples;
  }
  return sum;
}

std::vector<std::string> Aggregator::Notes() const {
  std::vector<std::string> notes;
  if (off_cpu_.missed() != 0) {
    notes.push_back(absl::StrFormat(
        "%d records of context switches are missing: times on and off the CPU are wrong there", off_cpu_.missed()));
  }
  if (threads_.retired() != 0) {
    notes.push_back(absl::StrFormat(
        "%d threads that ended early are summed up by name, without the times of their samples", threads_.retired()));
  }
  if (given_.threw) {
    notes.push_back(
        absl::StrFormat("on_batch threw an exception in batch %d, and was not called again", given_.batches));
  }
  if (not_ready_stacks_ != 0) {
    notes.push_back(
        absl::StrFormat("%d stacks of the first milliseconds end at modules whose unwind tables were still "
                        "to be built",
                        not_ready_stacks_));
  }
  if (!look_error_.ok()) {
    notes.push_back(
        absl::StrFormat("where threads are blocked, and in what, is not known everywhere: %s", look_error_.message()));
  }
  return notes;
}

void Aggregator::FindRunning() {
  for (const OffCpu::Sleeper& thread : off_cpu_.Unknown()) {
    off_cpu_.SeenRunning(thread.thread, proc::ReadState(static_cast<pid_t>(thread.tid)) == 'R');
  }
}

Profile Aggregator::MakeProfile(uint64_t now_ns, bool is_last, const OnNamed& on_named) {
  // Waits that last are entered up to now, and go on from here: two snapshots have each moment of a wait once.
  off_cpu_.CutAt(now_ns, is_last, [&](const OffCpuSpan& span) { AddSpan(span); });
  std::vector<ProfileSample> under_way = SamplesUnderWay();
  if (zones_) {
    zones_->Read(now_ns);
    zones_->Label(builder_.profile().samples);
    zones_->Label(under_way);
  }
  if (is_last) {
    GiveBatch(on_named);
    GiveBatch(under_way, on_named);
  }
  Resolve(on_named);
  // A copy: the builder's own goes on.
  Profile profile = builder_.profile();
  profile.samples.insert(profile.samples.end(), under_way.begin(), under_way.end());
  std::stable_sort(profile.samples.begin(), profile.samples.end(),
                   [](const ProfileSample& a, const ProfileSample& b) { return a.time_ns < b.time_ns; });
  profile.accounting.addresses_forgotten = InOtherAddresses(profile.samples);
  profile.accounting.notes = Notes();
  for (uint32_t i = 0; i < profile.threads.size(); ++i) {
    const OffCpu::Times times = off_cpu_.TimesOf(i);
    profile.threads[i].on_ns += times.on_ns, profile.threads[i].off_ns += times.off_ns;
  }
  if (zones_) zones_->AddTo(profile, start_ns_, now_ns);
  MarkWholeFrames(profile);
  std::vector<bool> is_unused(profile.threads.size());
  for (const uint32_t thread : threads_.unused()) is_unused[thread] = true;
  DropThreads(profile, is_unused);
  if (!options_.thread_name.empty()) KeepThreads(profile, options_.thread_name);
  return profile;
}

void Aggregator::ForgetSamples() {
  Profile& profile = builder_.profile();
  matcher_.Clear();
  followers_.Restart(FollowerValues::kNever);
  if (zones_) zones_->ForgetAll();
  profile.samples.clear();
  merged_bytes_ = given_.samples = 0;
  // The wait that all preempted spans share was added first, and stays.
  profile.waits.resize(preempted_wait_ + 1);
  profile.accounting = {};
}

// Locations that have no calls yet.
void Aggregator::Resolve(const OnNamed& on_named) {
  const std::span<const CodeLocation> places = std::span(stacks_.places()).subspan(resolved_);
  // Each location is looked up once.
  const size_t first = resolved_;
  resolved_ = stacks_.places().size();
  std::vector<ProfileCall> calls;
  symbolizer_.ResolveAll(places, [&](const ResolvedLocation& resolved) {
    const auto location = static_cast<uint32_t>(first + resolved.index);
    calls.clear();
    for (const SourceFrame& frame : resolved.frames) {
      if (frame.function.empty() && !frame.inlined && resolved.symbol.function.empty()) continue;
      calls.push_back({.function = builder_.String(frame.function),
                       .file = builder_.String(frame.file),
                       .line = frame.line,
                       .inlined = frame.inlined});
    }
    if (!stacks_.IsOther(location)) builder_.SetCalls(location, calls);
    const CodeLocation& place = places[resolved.index];
    const uint32_t module = place.known() ? builder_.Module(resolved.symbol.module, symbolizer_.BuildId(place))
                                          : ProfileLocation::kNoModule;
    builder_.profile().locations[location].module = module;
    if (on_named) on_named(static_cast<double>(resolved.done) / static_cast<double>(places.size()));
    return true;
  });
}

}  // namespace perfkit::session
