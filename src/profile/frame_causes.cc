// Turns parts into causes. A part's excess goes to its waits, the longest first, because the median's time is that of
// the usual, shorter ones; or, for a zone on the CPU, to page faults as far as samples or counts show them, to nothing
// that is known as far as the zone was on the CPU but not sampled, and to more work for the rest. What is left of the
// frame's excess is entered as unknown, so that shares always add up to it.
#include "src/profile/frame_causes.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "src/profile/frame_counts.h"
#include "src/profile/stack_evidence.h"

namespace perfkit::profile {
namespace {

using Kind = FrameCause::Kind;
using Confidence = FrameCause::Confidence;

// The time that a page fault takes at most, if nothing but their number is known. Faults of 4 KiB take 0.3 to 6 us in
// virtual machines, so this cuts off what was something else.
constexpr double kMaxFaultNs = 20'000;
constexpr double kMinFaults = 16, kMinFaultRatio = 2;  // of faults that are conspicuous
constexpr uint64_t kMinGapIntervals = 4;               // what is no chance: samples of a thread come at fixed times
constexpr int64_t kMinBlamed = 50;                     // other threads are searched for 1/50 of the excess, or more

constexpr char kMedians[] = "medians that do not add up";
constexpr char kKernelTells[] = "CAP_PERFMON, to sample the kernel";
constexpr char kWallTells[] = "SessionClock::kWall";

// What the clock's samples in a zone show.
struct ZoneSamples {
  uint64_t all_ns = 0;
  uint64_t fault_ns = 0;        // in the kernel's code for page faults
  uint64_t bare_kernel_ns = 0;  // in the kernel, without the calls that would tell where
  uint32_t fault_stack = ProfileStack::kRoot;
  StackQuality fault_quality = StackQuality::kNone;
};

struct Faults {
  double extra = 0;     // more than usual; 0 if they are not conspicuous, or not counted
  double fraction = 1;  // of all that are more than usual
  uint32_t stack = ProfileStack::kRoot;
  StackQuality quality = StackQuality::kNone;
};

Faults FaultsOf(const SlowFrame& frame) {
  for (const FrameCount& count : frame.counts) {
    if (!count.name.starts_with("page-faults") || count.value <= 0) continue;
    const bool many = count.excess() >= kMinFaults && count.value >= kMinFaultRatio * count.usual;
    return {.extra = many ? count.excess() : 0,
            .fraction = std::clamp(count.excess() / count.value, 0.0, 1.0),
            .stack = count.stack,
            .quality = count.quality};
  }
  return {};
}

bool HasKernelCaller(const Profile& profile, uint32_t stack) {
  return IsInKernel(profile, stack) && IsInKernel(profile, profile.stacks[stack].parent);
}

class CauseFinder {
 public:
  CauseFinder(const Profile& profile, const SlowFrame& frame)
      : profile_(profile), frame_(frame), zone_(profile.zones[frame.zone]), faults_(FaultsOf(frame)) {
    fault_room_ns_ = static_cast<int64_t>(faults_.extra * kMaxFaultNs);
    has_off_cpu_ = profile.EventIndex(kOffCpuEvent) < profile.events.size();
    const size_t clock = ClockOf(profile);
    if (clock >= profile.events.size() || profile.events[clock].unit != ProfileUnit::kNanoseconds) return;
    if (profile.events[clock].name == kOffCpuEvent) return;
    clock_ = clock;
    const Profile::Sum sum = profile.Total(clock);
    if (sum.samples != 0) interval_ns_ = sum.weight / sum.samples;
  }

  std::vector<FrameCause> Find(std::vector<WaitPiece> waits) {
    for (const WaitPiece& piece : waits) {
      if (WasExamined(piece)) examined_.push_back(piece);
    }
    std::stable_sort(examined_.begin(), examined_.end(),
                     [](const WaitPiece& a, const WaitPiece& b) { return a.from_ns < b.from_ns; });
    std::stable_sort(waits.begin(), waits.end(),
                     [](const WaitPiece& a, const WaitPiece& b) { return a.duration_ns() > b.duration_ns(); });
    FrameCause less{.kind = Kind::kLess, .confidence = Confidence::kKnown};
    for (const FramePart& part : frame_.parts) {
      if (part.excess_ns() <= 0) {
        less.share_ns += part.excess_ns();
      } else if (part.kind == FramePart::Kind::kZone) {
        AddZone(part);
      } else {
        AddWaits(part, waits);
      }
    }
    Add(std::move(less));
    Add({.share_ns = frame_.rest_ns, .what = kMedians});
    std::stable_sort(causes_.begin(), causes_.end(),
                     [](const FrameCause& a, const FrameCause& b) { return a.share_ns > b.share_ns; });
    return std::move(causes_);
  }

 private:
  // Causes that say the same are one, with the confidence of its larger half.
  void Add(FrameCause cause) {
    if (cause.share_ns == 0) return;
    const auto key = [](const FrameCause& one) { return std::tie(one.kind, one.what, one.thread); };
    auto same = std::ranges::find_if(causes_, [&](const FrameCause& one) { return key(one) == key(cause); });
    const int64_t known_ns = cause.confidence == Confidence::kKnown ? cause.share_ns : 0;
    if (same == causes_.end()) {
      causes_.push_back(std::move(cause));
      known_ns_.push_back(known_ns);
      return;
    }
    int64_t& all_known_ns = known_ns_[static_cast<size_t>(same - causes_.begin())];
    all_known_ns += known_ns;
    same->share_ns += cause.share_ns;
    if (same->kind == Kind::kUnknown || same->kind == Kind::kLess) return;
    same->confidence = all_known_ns * 2 >= same->share_ns ? Confidence::kKnown : Confidence::kLikely;
    if (same->remedy.empty()) same->remedy = std::move(cause.remedy);
  }

  bool WasExamined(const WaitPiece& piece) const {
    const uint32_t wait = profile_.samples[piece.sample].wait;
    return wait != ProfileSample::kNoWait && profile_.waits[wait].examined_ns != 0;
  }

  bool IsInZone(const WaitPiece& piece, uint32_t label) const { return profile_.samples[piece.sample].label == label; }

  // Many short waits in a row are probably for the same: what those before and after this one in the zone were for.
  std::optional<FrameCause> LikeItsNeighbours(const WaitPiece& piece) const {
    const uint32_t label = profile_.samples[piece.sample].label;
    const auto is_before = [](const WaitPiece& one, uint64_t time_ns) { return one.from_ns < time_ns; };
    const auto next = std::lower_bound(examined_.begin(), examined_.end(), piece.from_ns, is_before);
    std::vector<FrameCause> neighbours;
    if (next != examined_.end() && IsInZone(*next, label)) {
      neighbours.push_back(CauseOfWait(profile_, zone_.thread, *next, false));
    }
    if (next != examined_.begin() && IsInZone(*std::prev(next), label)) {
      neighbours.push_back(CauseOfWait(profile_, zone_.thread, *std::prev(next), false));
    }
    if (neighbours.empty()) return std::nullopt;
    const FrameCause &first = neighbours.front(), &last = neighbours.back();
    if (first.kind == Kind::kUnknown || first.kind != last.kind || first.what != last.what ||
        first.thread != last.thread)
      return std::nullopt;
    FrameCause cause = first;
    cause.confidence = Confidence::kLikely;
    return cause;
  }

  FrameCause CauseOf(const WaitPiece& piece, int64_t share_ns) const {
    FrameCause cause = CauseOfWait(profile_, zone_.thread, piece, share_ns * kMinBlamed >= frame_.excess_ns());
    if (cause.kind != Kind::kUnknown) return cause;
    if (std::optional<FrameCause> like = LikeItsNeighbours(piece)) return *std::move(like);
    return cause;
  }

  void AddWaits(const FramePart& part, const std::vector<WaitPiece>& waits) {
    int64_t left_ns = part.excess_ns();
    for (const WaitPiece& piece : waits) {
      if (left_ns == 0) return;
      if (piece.kind != part.kind || piece.part != part.name) continue;
      const int64_t share_ns = std::min(left_ns, static_cast<int64_t>(piece.duration_ns()));
      FrameCause cause = CauseOf(piece, share_ns);
      cause.share_ns = share_ns;
      left_ns -= share_ns;
      Add(std::move(cause));
    }
    Add({.share_ns = left_ns, .what = kMedians});
  }

  ZoneSamples SamplesOf(const FramePart& part) const {
    ZoneSamples zone;
    if (!clock_) return zone;
    const auto is_before = [](const ProfileSample& sample, uint64_t time_ns) { return sample.time_ns < time_ns; };
    auto sample = std::lower_bound(profile_.samples.begin(), profile_.samples.end(), zone_.from_ns, is_before);
    for (; sample != profile_.samples.end() && sample->time_ns < zone_.to_ns; ++sample) {
      const bool is_ours = sample->thread == zone_.thread && sample->event == *clock_ && !sample->merged();
      if (!is_ours || profile_.strings[sample->label] != part.name) continue;
      zone.all_ns += sample->weight;
      if (IsInPageFault(profile_, sample->stack)) {
        zone.fault_ns += sample->weight;
        zone.fault_stack = sample->stack;
        zone.fault_quality = sample->quality;
      } else if (IsInKernel(profile_, sample->stack) && !HasKernelCaller(profile_, sample->stack)) {
        zone.bare_kernel_ns += sample->weight;
      }
    }
    return zone;
  }

  bool is_user_only() const { return clock_ && profile_.events[*clock_].user_only; }

  // The time in which a zone was on a CPU, but was not sampled. Many page faults are reason enough for a short one
  // where the kernel is not sampled.
  int64_t GapOf(const FramePart& part, const ZoneSamples& samples) const {
    if (!clock_ || interval_ns_ == 0 || part.ns <= samples.all_ns) return 0;
    const uint64_t gap_ns = part.ns - samples.all_ns;
    const bool has_reason = is_user_only() && fault_room_ns_ > 0;
    const bool by_chance = gap_ns < kMinGapIntervals * interval_ns_ || (gap_ns < part.ns / 2 && !has_reason);
    return by_chance ? 0 : static_cast<int64_t>(gap_ns);
  }

  void AddZone(const FramePart& part) {
    FrameCause cause{.what = part.name, .stack = part.stack, .quality = part.quality};
    const ZoneSamples samples = SamplesOf(part);
    int64_t left_ns = part.excess_ns(), gap_ns = GapOf(part, samples);
    left_ns -= AddFaults(part, samples, gap_ns, cause);
    cause.share_ns = std::min(left_ns, gap_ns);
    left_ns -= cause.share_ns;
    if (cause.share_ns != 0) AddGap(cause);
    cause.kind = Kind::kMoreWork;
    // Known if samples show that it ran for longer than usual, by at least half of the share.
    const int64_t shown_ns = static_cast<int64_t>(samples.all_ns - std::min(samples.all_ns, samples.fault_ns)) -
                             static_cast<int64_t>(part.usual_ns);
    cause.confidence = has_off_cpu_ && clock_ && 2 * shown_ns >= left_ns ? Confidence::kKnown : Confidence::kLikely;
    cause.share_ns = left_ns;
    Add(std::move(cause));
  }

  // Returns the share of page faults, and takes from `gap_ns` what they explain of it.
  int64_t AddFaults(const FramePart& part, const ZoneSamples& samples, int64_t& gap_ns, FrameCause cause) {
    const auto shown_ns = static_cast<int64_t>(static_cast<double>(samples.fault_ns) * faults_.fraction);
    const int64_t proven_ns = std::min(part.excess_ns(), shown_ns);
    const int64_t hidden_ns = static_cast<int64_t>(samples.bare_kernel_ns) + (is_user_only() ? gap_ns : 0);
    const int64_t room_ns = std::max<int64_t>(fault_room_ns_ - proven_ns, 0);
    const int64_t likely_ns = std::min({part.excess_ns() - proven_ns, hidden_ns, room_ns});
    if (is_user_only()) gap_ns -= std::min(gap_ns, likely_ns);
    fault_room_ns_ -= std::min(fault_room_ns_, proven_ns + likely_ns);
    cause.kind = Kind::kPageFaults;
    cause.confidence = proven_ns >= likely_ns ? Confidence::kKnown : Confidence::kLikely;
    if (is_user_only()) cause.remedy = kKernelTells;
    cause.share_ns = proven_ns + likely_ns;
    if (samples.fault_stack != ProfileStack::kRoot) {
      cause.stack = samples.fault_stack;
      cause.quality = samples.fault_quality;
    } else if (faults_.stack != ProfileStack::kRoot) {
      cause.stack = faults_.stack;
      cause.quality = faults_.quality;
    }
    const int64_t share_ns = cause.share_ns;
    Add(std::move(cause));
    return share_ns;
  }

  void AddGap(FrameCause cause) {
    const std::string where = cause.what.empty() ? "outside of zones" : "in " + cause.what;
    cause.kind = Kind::kUnknown;
    cause.confidence = Confidence::kUnknown;
    if (!has_off_cpu_) {
      cause.what = "time on or off the CPU " + where;
      cause.remedy = kWallTells;
    } else if (is_user_only()) {
      cause.what = "time in the kernel " + where + ", or taken by the machine";
      cause.remedy = kKernelTells;
    } else {
      cause.what = "time without samples " + where + ": taken by the machine, or samples are lost";
    }
    Add(std::move(cause));
  }

  const Profile& profile_;
  const SlowFrame& frame_;
  const ProfileZone& zone_;
  const Faults faults_;
  int64_t fault_room_ns_ = 0;  // what the rest of the page faults may have taken
  bool has_off_cpu_ = false;
  std::optional<size_t> clock_;
  uint64_t interval_ns_ = 0;         // of the clock's samples
  std::vector<WaitPiece> examined_;  // in order of time
  std::vector<FrameCause> causes_;
  std::vector<int64_t> known_ns_;  // of each cause: how much of its share is known
};

constexpr std::array<std::string_view, 12> kKindNames = {
    "unknown", "more work",    "page faults", "preempted",   "lock",           "allocator lock", "priority inversion",
    "I/O",     "other thread", "sleep",       "system call", "less than usual"};
constexpr std::array<std::string_view, 3> kConfidenceNames = {"unknown", "likely", "known"};

}  // namespace

std::vector<FrameCause> CausesOf(const Profile& profile, const SlowFrame& frame, std::vector<WaitPiece> waits) {
  return CauseFinder(profile, frame).Find(std::move(waits));
}

}  // namespace perfkit::profile

namespace perfkit {

std::string_view FrameCauseKindName(FrameCause::Kind kind) { return profile::kKindNames[static_cast<size_t>(kind)]; }

std::string_view FrameCauseConfidenceName(FrameCause::Confidence confidence) {
  return profile::kConfidenceNames[static_cast<size_t>(confidence)];
}

}  // namespace perfkit
