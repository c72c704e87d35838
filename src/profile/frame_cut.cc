// Cuts a frame out of a profile. Four steps: choose the time and the frames that it is compared with; take the entries
// of that time; find which threads, waits and stacks they refer to; take those with new indexes. A profile of an hour
// has millions of stacks: a file of one frame must not have them all.
#include "src/profile/frame_cut.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "perfkit/profile_builder.h"
#include "src/profile/frame_counts.h"
#include "src/profile/wait_text.h"

namespace perfkit::profile {
namespace {

constexpr size_t kMaxBefore = 2, kMaxReferences = 64;
// The next frame begins by the same reading of a clock as the one before ended, exact to some nanoseconds.
constexpr uint64_t kRoundingNs = 1000;

// New indexes of a table's entries: those that are used, in their order.
class Renumbering {
 public:
  explicit Renumbering(size_t size) : used_(size), numbers_(size) {}

  // UINT32_MAX is "none" in all tables.
  void Use(uint32_t index) {
    if (index != UINT32_MAX) used_[index] = true;
  }
  bool is_used(uint32_t index) const { return used_[index]; }
  uint32_t operator()(uint32_t index) const { return index == UINT32_MAX ? index : numbers_[index]; }

  // Numbers the used entries, and returns them. Call Use before.
  template <class Entry>
  std::vector<Entry> Take(const std::vector<Entry>& all) {
    std::vector<Entry> taken;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!used_[i]) continue;
      numbers_[i] = static_cast<uint32_t>(taken.size());
      taken.push_back(all[i]);
    }
    return taken;
  }

 private:
  std::vector<bool> used_;
  std::vector<uint32_t> numbers_;
};

uint64_t EndOf(const ProfileSample& sample, bool is_wait) {
  return is_wait ? sample.time_ns + std::min(sample.weight, UINT64_MAX - sample.time_ns) : sample.time_ns;
}

class Cutter {
 public:
  Cutter(const Profile& profile, const SlowFrame& frame)
      : all_(profile),
        zone_(profile.zones[frame.zone]),
        off_cpu_(profile.EventIndex(kOffCpuEvent)),
        threads_(profile.threads.size()),
        waits_(profile.waits.size()),
        stacks_(profile.stacks.size()) {
    cut_.frame = frame;
    cut_.text = FormatSlowFrame(profile, frame);
    FindFrames(frame.zone);
  }

  FrameCut Cut(References references) {
    if (references == References::kLeave) cut_.references.clear();
    Profile& to = cut_.profile;
    to.program = all_.program;
    to.accounting = all_.accounting;
    to.realtime_offset_ns = all_.realtime_offset_ns;
    to.from_ns = zone_.from_ns, to.to_ns = zone_.to_ns;
    to.events = all_.events;
    to.memory = all_.memory;  // small: at most some thousands
    TakeSamples();
    TakeZones();
    TakeCounters();
    FindUsed();
    Renumber();
    DropStrings();
    FindSpans();
    DropNames();
    return std::move(cut_);
  }

 private:
  bool IsInTime(uint64_t from_ns, uint64_t to_ns) const {
    // An entry without a length is in the time that it begins in.
    return from_ns < zone_.to_ns && (to_ns > cut_.from_ns || from_ns >= cut_.from_ns);
  }
  bool IsInReference(uint64_t from_ns, uint64_t to_ns) const;
  void FindFrames(uint32_t frame);
  void TakeSamples();
  void TakeZones();
  void TakeCounters();
  void FindUsed();
  void Renumber();
  void RenumberEntries();
  void RenumberFrame();
  void TakeCode();
  void DropStrings();
  void FindSpans();
  void DropNames();
  FrameCut::Time KnownTime(uint32_t thread) const;
  uint32_t TakenSample(uint32_t sample) const;

  const Profile& all_;
  const ProfileZone& zone_;
  const size_t off_cpu_;
  FrameCut cut_;
  std::vector<uint32_t> taken_;  // By sample of the cut: its index in all_.
  Renumbering threads_, waits_, stacks_;
};

// The frames right before it, and those that it is compared with (FindSlowFrames): evenly chosen if they are many.
void Cutter::FindFrames(uint32_t frame) {
  const std::string_view kind = FrameKind(all_.strings[zone_.name]);
  std::vector<FrameCut::Time> others, references;
  for (uint32_t i = 0; i < all_.zones.size(); ++i) {
    const ProfileZone& other = all_.zones[i];
    const bool is_of_kind =
        other.is_frame && other.is_whole && other.thread == zone_.thread && FrameKind(all_.strings[other.name]) == kind;
    if (!is_of_kind || i == frame) continue;
    others.push_back({other.from_ns, other.to_ns});
    if (other.is_reference) references.push_back(others.back());
  }
  const auto is_before = [](const FrameCut::Time& a, const FrameCut::Time& b) { return a.from_ns < b.from_ns; };
  std::sort(others.begin(), others.end(), is_before);
  std::sort(references.begin(), references.end(), is_before);
  cut_.from_ns = zone_.from_ns;
  auto before = std::lower_bound(others.begin(), others.end(), FrameCut::Time{zone_.from_ns, 0}, is_before);
  for (size_t i = 0; i < kMaxBefore && before != others.begin(); ++i) {
    --before;
    if (before->to_ns > cut_.from_ns + kRoundingNs || before->to_ns + kRoundingNs < cut_.from_ns) break;
    cut_.from_ns = before->from_ns;
  }
  // As FindSlowFrames: the frame itself may be the only reference.
  const bool has_references = zone_.is_reference || !references.empty();
  const std::vector<FrameCut::Time>& compared = has_references ? references : others;
  cut_.compared = compared.size();
  const size_t taken = std::min(compared.size(), kMaxReferences);
  for (size_t i = 0; i < taken; ++i) cut_.references.push_back(compared[i * compared.size() / taken]);
}

bool Cutter::IsInReference(uint64_t from_ns, uint64_t to_ns) const {
  // The first that ends after the entry begins: frames of a kind do not overlap.
  const auto found = std::partition_point(cut_.references.begin(), cut_.references.end(),
                                          [&](const FrameCut::Time& one) { return one.to_ns <= from_ns; });
  return found != cut_.references.end() && (to_ns > found->from_ns || from_ns >= found->from_ns);
}

void Cutter::TakeSamples() {
  for (uint32_t i = 0; i < all_.samples.size(); ++i) {
    const ProfileSample& sample = all_.samples[i];
    if (sample.merged()) continue;
    const uint64_t to_ns = EndOf(sample, sample.event == off_cpu_);
    const bool is_taken =
        IsInTime(sample.time_ns, to_ns) || (sample.thread == zone_.thread && IsInReference(sample.time_ns, to_ns));
    if (!is_taken) continue;
    taken_.push_back(i);
    cut_.profile.samples.push_back(sample);
  }
}

void Cutter::TakeZones() {
  const uint32_t frame = cut_.frame.zone;
  for (uint32_t i = 0; i < all_.zones.size(); ++i) {
    const ProfileZone& zone = all_.zones[i];
    if (i != frame && !IsInTime(zone.from_ns, zone.to_ns)) continue;
    if (i == frame) cut_.frame.zone = static_cast<uint32_t>(cut_.profile.zones.size());
    cut_.profile.zones.push_back(zone);
  }
}

void Cutter::TakeCounters() {
  for (const ProfileCounter& counter : all_.counters) {
    ProfileCounter taken{.name = counter.name, .unit = counter.unit, .thread = counter.thread};
    for (const ProfileCounter::Point& point : counter.points) {
      if (point.time_ns >= cut_.from_ns && point.time_ns < zone_.to_ns) taken.points.push_back(point);
    }
    if (!taken.points.empty()) cut_.profile.counters.push_back(std::move(taken));
  }
}

void Cutter::FindUsed() {
  const auto use_wait = [&](uint32_t wait) {
    waits_.Use(wait);
    if (wait == ProfileSample::kNoWait) return;
    threads_.Use(all_.waits[wait].holder);
    stacks_.Use(all_.waits[wait].holder_stack);
  };
  threads_.Use(zone_.thread);
  for (const ProfileSample& sample : cut_.profile.samples) {
    threads_.Use(sample.thread);
    stacks_.Use(sample.stack);
    use_wait(sample.wait);
  }
  for (const ProfileZone& zone : cut_.profile.zones) threads_.Use(zone.thread);
  for (const ProfileCounter& counter : cut_.profile.counters) threads_.Use(counter.thread);
  for (const FramePart& part : cut_.frame.parts) {
    stacks_.Use(part.stack);
    use_wait(part.wait);
  }
  for (const FrameCount& count : cut_.frame.counts) stacks_.Use(count.stack);
  for (const FaultedMemory& faults : cut_.frame.faults) stacks_.Use(faults.stack);
  for (const FrameThread& other : cut_.frame.others) {
    threads_.Use(other.thread);
    stacks_.Use(other.stack);
  }
  for (const FrameCause& cause : cut_.frame.causes) {
    stacks_.Use(cause.stack);
    stacks_.Use(cause.thread_stack);
    threads_.Use(cause.thread);
    use_wait(cause.wait);
  }
  for (auto i = static_cast<uint32_t>(all_.stacks.size()); i-- > 0;) {
    if (stacks_.is_used(i)) stacks_.Use(all_.stacks[i].parent);
  }
}

void Cutter::Renumber() {
  Profile& to = cut_.profile;
  to.strings = all_.strings;
  to.threads = threads_.Take(all_.threads);
  cut_.silent_threads = all_.threads.size() - to.threads.size();
  to.waits = waits_.Take(all_.waits);
  to.stacks = stacks_.Take(all_.stacks);
  RenumberEntries();
  RenumberFrame();
  TakeCode();
}

void Cutter::RenumberEntries() {
  Profile& to = cut_.profile;
  for (ProfileSample& sample : to.samples) {
    sample.thread = threads_(sample.thread);
    sample.stack = stacks_(sample.stack);
    sample.wait = waits_(sample.wait);
  }
  for (ProfileWait& wait : to.waits) {
    wait.holder = threads_(wait.holder);
    wait.holder_stack = stacks_(wait.holder_stack);
  }
  for (ProfileStack& stack : to.stacks) stack.parent = stacks_(stack.parent);
  for (ProfileZone& zone : to.zones) zone.thread = threads_(zone.thread);
  for (ProfileCounter& counter : to.counters) counter.thread = threads_(counter.thread);
}

void Cutter::RenumberFrame() {
  for (FramePart& part : cut_.frame.parts) {
    part.stack = stacks_(part.stack);
    part.wait = waits_(part.wait);
  }
  for (FrameCount& count : cut_.frame.counts) count.stack = stacks_(count.stack);
  for (FaultedMemory& faults : cut_.frame.faults) faults.stack = stacks_(faults.stack);
  for (FrameThread& other : cut_.frame.others) {
    other.thread = threads_(other.thread);
    other.stack = stacks_(other.stack);
  }
  for (FrameCause& cause : cut_.frame.causes) {
    cause.stack = stacks_(cause.stack);
    cause.thread_stack = stacks_(cause.thread_stack);
    cause.thread = threads_(cause.thread);
    cause.wait = waits_(cause.wait);
  }
}

// Locations of the stacks, with their calls and modules.
void Cutter::TakeCode() {
  Profile& to = cut_.profile;
  Renumbering locations(all_.locations.size()), modules(all_.modules.size());
  for (const ProfileStack& stack : to.stacks) locations.Use(stack.location);
  to.locations = locations.Take(all_.locations);
  for (ProfileStack& stack : to.stacks) stack.location = locations(stack.location);
  for (const ProfileLocation& location : to.locations) modules.Use(location.module);
  to.modules = modules.Take(all_.modules);
  for (ProfileLocation& location : to.locations) {
    const auto first = all_.calls.begin() + location.first_call;
    location.module = modules(location.module);
    location.first_call = static_cast<uint32_t>(to.calls.size());
    to.calls.insert(to.calls.end(), first, first + location.calls);
  }
}

void Cutter::DropStrings() {
  ProfileBuilder builder;
  builder.profile() = std::move(cut_.profile);
  builder.CompactStrings();
  cut_.profile = std::move(builder.profile());
}

// What is known of a thread: from its first entry to its last. One that sleeps on has no entry of its sleep yet.
FrameCut::Time Cutter::KnownTime(uint32_t thread) const {
  FrameCut::Time known{UINT64_MAX, 0};
  const auto cover = [&](uint64_t from_ns, uint64_t to_ns) {
    known.from_ns = std::min(known.from_ns, from_ns), known.to_ns = std::max(known.to_ns, to_ns);
  };
  for (const ProfileSample& sample : cut_.profile.samples) {
    const uint64_t to_ns = EndOf(sample, sample.event == off_cpu_);
    if (sample.thread == thread && IsInTime(sample.time_ns, to_ns)) cover(sample.time_ns, to_ns);
  }
  for (const ProfileZone& zone : cut_.profile.zones) {
    if (zone.thread == thread) cover(zone.from_ns, zone.to_ns);
  }
  known.from_ns = std::clamp(known.from_ns, cut_.from_ns, zone_.to_ns);
  known.to_ns = std::clamp(known.to_ns, known.from_ns, zone_.to_ns);
  return known;
}

uint32_t Cutter::TakenSample(uint32_t sample) const {
  const auto found = std::lower_bound(taken_.begin(), taken_.end(), sample);
  const bool is_taken = found != taken_.end() && *found == sample;
  return is_taken ? static_cast<uint32_t>(found - taken_.begin()) : ThreadParts::kNoSample;
}

// The frame's thread by the whole profile, as FindSlowFrames did: zones that overlap are cut by those before them,
// which the cut may lack.
void Cutter::FindSpans() {
  const uint32_t own = cut_.profile.zones[cut_.frame.zone].thread;
  for (uint32_t thread = 0; thread < cut_.profile.threads.size(); ++thread) {
    const bool is_own = thread == own;
    const ThreadParts parts(is_own ? all_ : cut_.profile, is_own ? zone_.thread : thread, cut_.names);
    std::vector<FrameSpan>& spans = cut_.spans.emplace_back();
    const auto add = [&](uint32_t part, uint64_t ns, uint32_t sample) {
      const bool is_other = is_own && sample != ThreadParts::kNoSample;
      if (ns != 0) spans.push_back({part, is_other ? TakenSample(sample) : sample, ns});
    };
    const FrameCut::Time known = KnownTime(thread);
    for (const FrameCut::Time& time : {FrameCut::Time{cut_.from_ns, zone_.from_ns}, {zone_.from_ns, zone_.to_ns}}) {
      const uint64_t from_ns = std::clamp(known.from_ns, time.from_ns, time.to_ns);
      const uint64_t to_ns = std::clamp(known.to_ns, from_ns, time.to_ns);
      add(FrameSpan::kUnknown, from_ns - time.from_ns, ThreadParts::kNoSample);
      parts.Split(from_ns, to_ns, add);
      add(FrameSpan::kUnknown, time.to_ns - to_ns, ThreadParts::kNoSample);
    }
  }
}

// Those of parts that no span is in: the whole profile's.
void Cutter::DropNames() {
  const PartNames all = std::exchange(cut_.names, {});
  for (std::vector<FrameSpan>& spans : cut_.spans) {
    for (FrameSpan& span : spans) {
      if (span.part != FrameSpan::kUnknown) span.part = cut_.names.Of(all[span.part].kind, all[span.part].text);
    }
  }
}

}  // namespace

FrameCut CutFrame(const Profile& profile, const SlowFrame& frame, References references) {
  return Cutter(profile, frame).Cut(references);
}

}  // namespace perfkit::profile
