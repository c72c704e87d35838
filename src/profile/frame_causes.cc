// Turns parts into causes. A part's excess goes to its waits, first to those that are longest beyond what is usually
// waited for the same; or, for a zone on the CPU, to what the machine took, to page faults as far as samples or counts
// show them, to unknown for its time without samples, and to more work for the rest. What is left of the frame's excess
// is entered as unknown, so that shares always add up to it.
#include "src/profile/frame_causes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "src/profile/faulted_memory.h"
#include "src/profile/frame_counts.h"
#include "src/profile/preempter_shares.h"
#include "src/profile/stack_evidence.h"
#include "src/profile/stolen_time.h"
#include "src/profile/wait_neighbours.h"

namespace perfkit::profile {
namespace {

using Kind = FrameCause::Kind;
using Confidence = FrameCause::Confidence;

// The time that a page fault takes at most, if nothing but their number is known. Faults of 4 KiB take 0.3 to 6 us in
// virtual machines, so this cuts off what was something else.
constexpr double kMaxFaultNs = 20'000;
constexpr uint64_t kMinGapIntervals = 4;  // shorter gaps may be chance: samples come at fixed intervals
constexpr int64_t kMinBlamed = 50;        // other threads are searched if the wait is 1/50 of the excess

constexpr char kMedians[] = "medians that do not add up";
constexpr char kKernelTells[] = "CAP_PERFMON, to sample the kernel";
constexpr char kWallTells[] = "SessionClock::kWall";
constexpr char kMemoryTells[] = "a larger SessionOptions::memory_bytes";

// What the clock's samples in a zone show.
struct SampledZone {
  std::map<uint32_t, std::pair<uint64_t, StackQuality>> by_stack;  // their time
  uint64_t all_ns = 0;
  uint64_t fault_ns = 0;        // in the kernel's code for page faults
  uint64_t usual_fault_ns = 0;  // the mean of other frames
  uint64_t bare_kernel_ns = 0;  // in the kernel, without the calls that would tell where
  uint32_t fault_stack = ProfileStack::kRoot;
  StackQuality fault_quality = StackQuality::kNone;
};

bool HasKernelCaller(const Profile& profile, uint32_t stack) {
  return IsInKernel(profile, stack) && IsInKernel(profile, profile.stacks[stack].parent);
}

class CauseFinder {
 public:
  CauseFinder(const Profile& profile, const SlowFrame& frame, const ZoneSamples& samples, const UsualTimes& usual)
      : profile_(profile),
        frame_(frame),
        samples_(samples),
        usual_(usual),
        zone_(profile.zones[frame.zone]),
        faults_(FaultsOf(frame)),
        stolen_ns_(static_cast<int64_t>(StolenIn(profile, zone_))) {
    fault_room_ns_ = static_cast<int64_t>(faults_.extra * kMaxFaultNs);
    has_off_cpu_ = HasOffCpuTimes(profile, zone_.thread);
    const size_t clock = ClockOf(profile, zone_);
    if (clock >= profile.events.size() || profile.events[clock].unit != ProfileUnit::kNanoseconds) return;
    if (profile.events[clock].name == kOffCpuEvent) return;
    clock_ = clock;
    interval_ns_ = IntervalOf(profile, clock, zone_.thread);
    is_merged_ = IsMerged(clock);
  }

  std::vector<FrameCause> Find(std::vector<WaitPiece> waits) {
    const WaitNeighbours neighbours(profile_, zone_.thread, waits);
    std::stable_sort(waits.begin(), waits.end(),
                     [](const WaitPiece& a, const WaitPiece& b) { return a.duration_ns() > b.duration_ns(); });
    FrameCause less{.kind = Kind::kLess, .confidence = Confidence::kKnown};
    for (const FramePart& part : frame_.parts) {
      if (part.excess_ns() <= 0) {
        less.share_ns += part.excess_ns();
      } else if (part.kind == FramePart::Kind::kZone) {
        AddZone(part);
      } else {
        AddWaits(part, waits, neighbours);
      }
    }
    for (FrameCause& cause : causes_) {
      if (cause.kind == Kind::kPreempted) cause.what = preempters_.Text(profile_);
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
    if (cause.kind == Kind::kPageFaults) cause.memory = MostFaulted(frame_, cause.what);
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

  WaitCause CauseOf(const WaitPiece& piece, int64_t share_ns, const WaitNeighbours& neighbours) const {
    WaitCause wait = CauseOfWait(profile_, zone_.thread, piece, share_ns * kMinBlamed >= frame_.excess_ns());
    if (WasExamined(profile_, piece) || wait.cause.kind == Kind::kPreempted) return wait;
    std::optional<FrameCause> like = neighbours.CauseLike(piece, wait.cause);
    if (!like) return wait;
    if (like->kind != Kind::kLock && like->kind != Kind::kOtherThread) wait.inverted_ns = 0;
    wait.cause = *std::move(like);
    return wait;
  }

  // 0 for preemption, which is the same cause each time.
  uint64_t UsualOff(const FramePart& part, uint32_t detail) const {
    if (part.kind != FramePart::Kind::kWait) return 0;
    const auto found = usual_.off_ns.find({part.name, detail});
    return found != usual_.off_ns.end() ? found->second : 0;
  }

  // A wait of the part, and how much longer it is than what usually is waited there for the same.
  struct Excess {
    const WaitPiece* piece = nullptr;
    uint64_t ns = 0;
  };
  // `waits`: the longest first. What is usual is taken from the shortest waits.
  std::vector<Excess> ExcessesOf(const FramePart& part, const std::vector<WaitPiece>& waits) const {
    std::vector<Excess> excesses;
    std::map<uint32_t, uint64_t> usual_ns;  // what is left of it, by detail
    for (auto piece = waits.rbegin(); piece != waits.rend(); ++piece) {
      if (piece->kind != part.kind || piece->part != part.name) continue;
      const uint32_t detail = DetailOf(profile_, *piece);
      uint64_t& left_ns = usual_ns.try_emplace(detail, UsualOff(part, detail)).first->second;
      const uint64_t taken_ns = std::min(left_ns, piece->duration_ns());
      left_ns -= taken_ns;
      excesses.push_back({&*piece, piece->duration_ns() - taken_ns});
    }
    std::ranges::reverse(excesses);
    std::ranges::stable_sort(excesses, [](const Excess& a, const Excess& b) { return a.ns > b.ns; });
    return excesses;
  }

  // Adds two causes if the thread that was waited for was preempted for a part of the time.
  void AddWait(WaitCause wait, uint64_t duration_ns) {
    FrameCause inversion = wait.cause;
    const double part = static_cast<double>(wait.inverted_ns) / static_cast<double>(std::max<uint64_t>(duration_ns, 1));
    inversion.kind = Kind::kPriorityInversion;
    inversion.what.clear();  // one cause for each thread: waits for other things join it
    inversion.share_ns = static_cast<int64_t>(part * static_cast<double>(wait.cause.share_ns));
    wait.cause.share_ns -= inversion.share_ns;
    Add(std::move(inversion));
    Add(std::move(wait.cause));
  }

  // Returns the share of used up CPU quotas. That it was this CPU's is proven only if nothing else ran there.
  int64_t AddThrottled(const WaitPiece& piece, FrameCause cause) {
    const ProfileSample& sample = profile_.samples[piece.sample];
    const ProfileWait& wait = profile_.waits[sample.wait];
    if (wait.throttled_ns == 0) return 0;
    const double part =
        static_cast<double>(wait.throttled_ns) / static_cast<double>(std::max<uint64_t>(sample.weight, 1));
    cause.share_ns = static_cast<int64_t>(std::min(part, 1.0) * static_cast<double>(cause.share_ns));
    const bool was_idle = wait.preempter.is_known() && wait.preempter.tid == 0 && wait.preempter.others == 0;
    cause.kind = Kind::kThrottled;
    if (!was_idle) cause.confidence = Confidence::kLikely;
    const int64_t share_ns = cause.share_ns;
    Add(std::move(cause));
    return share_ns;
  }

  void AddWaits(const FramePart& part, const std::vector<WaitPiece>& waits, const WaitNeighbours& neighbours) {
    int64_t left_ns = part.excess_ns();
    const std::vector<Excess> excesses = ExcessesOf(part, waits);
    // What is usual may be for the same, but was not examined.
    const auto unexamined_ns = static_cast<int64_t>(UsualOff(part, 0));
    for (const bool is_rest : {false, true}) {
      for (const Excess& excess : excesses) {
        const auto more_ns = static_cast<int64_t>(excess.ns);
        const int64_t at_most_ns = is_rest ? static_cast<int64_t>(excess.piece->duration_ns()) - more_ns : more_ns;
        const int64_t share_ns = std::min(left_ns, at_most_ns);
        if (share_ns <= 0) continue;
        WaitCause wait = CauseOf(*excess.piece, share_ns, neighbours);
        const bool is_shown = !is_rest && 2 * (more_ns - unexamined_ns) >= share_ns;
        if (!is_shown && wait.cause.confidence == Confidence::kKnown) wait.cause.confidence = Confidence::kLikely;
        wait.cause.share_ns = share_ns;
        left_ns -= share_ns;
        if (wait.cause.kind == Kind::kPreempted) {
          wait.cause.share_ns -= AddThrottled(*excess.piece, wait.cause);
          preempters_.Add(profile_, *excess.piece, wait.cause.share_ns);
        }
        AddWait(std::move(wait), excess.piece->duration_ns());
      }
    }
    Add({.share_ns = left_ns, .what = kMedians});
  }

  // Returns true if samples of the frame's thread were merged, the oldest first, and the frame may be as old. All
  // threads' samples are merged up to the same time. A filter by time has removed merged samples.
  bool IsMerged(size_t clock) const {
    const bool has_merged = !profile_.samples.empty() && profile_.samples[0].merged();
    bool any_merged = !has_merged && profile_.accounting.times_forgotten != 0 && zone_.from_ns >= profile_.from_ns;
    for (const ProfileSample& sample : profile_.samples) {
      if (sample.event != clock) continue;
      if (!sample.merged()) return any_merged && zone_.from_ns < sample.time_ns;
      any_merged = any_merged || sample.thread == zone_.thread;
    }
    return any_merged;
  }

  SampledZone SamplesOf(const FramePart& part) const {
    SampledZone zone;
    const auto found = samples_.find(part.name);
    if (!clock_ || found == samples_.end()) return zone;
    for (const uint32_t index : found->second) {
      const ProfileSample& sample = profile_.samples[index];
      zone.all_ns += sample.weight;
      zone.by_stack.try_emplace(sample.stack, 0, sample.quality).first->second.first += sample.weight;
      if (IsInPageFault(profile_, sample.stack)) {
        zone.fault_ns += sample.weight;
        zone.fault_stack = sample.stack;
        zone.fault_quality = sample.quality;
      } else if (IsInKernel(profile_, sample.stack) && !HasKernelCaller(profile_, sample.stack)) {
        zone.bare_kernel_ns += sample.weight;
      }
    }
    for (const auto& [key, ns] : usual_.sampled_ns) {
      const bool is_fault = key.first == part.name && IsInPageFault(profile_, key.second);
      zone.usual_fault_ns += is_fault ? ns : 0;
    }
    return zone;
  }

  // The stack that most samples have of the function that ran longest beyond the usual: `cause` has the part's, which
  // may be of what always runs there.
  void FindUnusualStack(const FramePart& part, const SampledZone& samples, FrameCause& cause) const {
    std::map<std::string, int64_t> more_ns;  // by function
    for (const auto& [stack, sampled] : samples.by_stack) {
      more_ns[OwnFunction(profile_, stack)] += static_cast<int64_t>(sampled.first);
    }
    for (const auto& [key, ns] : usual_.sampled_ns) {
      if (key.first != part.name) continue;
      more_ns[OwnFunction(profile_, key.second)] -= static_cast<int64_t>(ns);
    }
    const auto most = std::ranges::max_element(more_ns, {}, [](const auto& function) { return function.second; });
    if (most == more_ns.end() || most->second <= 0) return;
    uint64_t longest_ns = 0;
    for (const auto& [stack, sampled] : samples.by_stack) {
      if (sampled.first <= longest_ns || OwnFunction(profile_, stack) != most->first) continue;
      longest_ns = sampled.first;
      cause.stack = stack;
      cause.quality = sampled.second;
    }
  }

  bool is_user_only() const { return clock_ && profile_.events[*clock_].user_only; }

  // The time in which a zone was on a CPU, but was not sampled. Many page faults are reason enough for a short one
  // where the kernel is not sampled.
  int64_t GapOf(const FramePart& part, const SampledZone& samples) const {
    if (!clock_ || interval_ns_ == 0 || part.ns <= samples.all_ns) return 0;
    const uint64_t gap_ns = part.ns - samples.all_ns;
    const bool has_reason = is_user_only() && fault_room_ns_ > 0;
    const bool by_chance = gap_ns < kMinGapIntervals * interval_ns_ || (gap_ns < part.ns / 2 && !has_reason);
    return by_chance ? 0 : static_cast<int64_t>(gap_ns);
  }

  void AddZone(const FramePart& part) {
    FrameCause cause{.what = part.name, .stack = part.stack, .quality = part.quality};
    const SampledZone samples = SamplesOf(part);
    int64_t left_ns = part.excess_ns(), gap_ns = GapOf(part, samples);
    left_ns -= AddStolen(part, samples, gap_ns, cause);
    left_ns -= AddFaults(left_ns, samples, gap_ns, cause);
    cause.share_ns = std::min(left_ns, gap_ns);
    left_ns -= cause.share_ns;
    if (cause.share_ns != 0) AddGap(cause);
    cause.kind = Kind::kMoreWork;
    FindUnusualStack(part, samples, cause);
    // Known if samples show that it ran for longer than usual, by at least half of the share.
    const int64_t shown_ns = static_cast<int64_t>(samples.all_ns - std::min(samples.all_ns, samples.fault_ns)) -
                             static_cast<int64_t>(part.usual_ns);
    cause.confidence = has_off_cpu_ && clock_ && 2 * shown_ns >= left_ns ? Confidence::kKnown : Confidence::kLikely;
    cause.share_ns = left_ns;
    Add(std::move(cause));
  }

  // Returns the share of what was taken by the machine, and takes it from `gap_ns`. There are no samples in such a
  // time.
  int64_t AddStolen(const FramePart& part, const SampledZone& samples, int64_t& gap_ns, FrameCause cause) {
    const auto unsampled_ns = static_cast<int64_t>(part.ns - std::min(part.ns, samples.all_ns));
    cause.kind = Kind::kStolen;
    cause.confidence = Confidence::kLikely;
    cause.share_ns = std::min({part.excess_ns(), unsampled_ns, stolen_ns_});
    stolen_ns_ -= cause.share_ns;
    gap_ns -= std::min(gap_ns, cause.share_ns);
    const int64_t share_ns = cause.share_ns;
    Add(std::move(cause));
    return share_ns;
  }

  // Returns the share of page faults in what is left of a part's excess, and takes from `gap_ns` what they explain of
  // it.
  int64_t AddFaults(int64_t excess_ns, const SampledZone& samples, int64_t& gap_ns, FrameCause cause) {
    const auto shown_ns = static_cast<int64_t>(samples.fault_ns - std::min(samples.fault_ns, samples.usual_fault_ns));
    const int64_t proven_ns = std::min(excess_ns, shown_ns);
    const int64_t hidden_ns = static_cast<int64_t>(samples.bare_kernel_ns) + (is_user_only() ? gap_ns : 0);
    const int64_t room_ns = std::max<int64_t>(fault_room_ns_ - proven_ns, 0);
    const int64_t likely_ns = std::min({excess_ns - proven_ns, hidden_ns, room_ns});
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
    if (is_merged_) {
      cause.what = "time " + where + " whose samples were merged with those of other times";
      cause.remedy = kMemoryTells;
    } else if (!has_off_cpu_) {
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
  const ZoneSamples& samples_;
  const UsualTimes& usual_;
  const ProfileZone& zone_;
  const FrameFaults faults_;
  int64_t stolen_ns_ = 0;      // what the machine took, and no cause has yet
  int64_t fault_room_ns_ = 0;  // what the rest of the page faults may have taken
  bool has_off_cpu_ = false;
  std::optional<size_t> clock_;
  uint64_t interval_ns_ = 0;  // of the clock's samples
  bool is_merged_ = false;    // the clock's samples of the frame's time may be merged
  PreempterShares preempters_;
  std::vector<FrameCause> causes_;
  std::vector<int64_t> known_ns_;  // of each cause: how much of its share is known
};

}  // namespace

std::vector<FrameCause> CausesOf(const Profile& profile, const SlowFrame& frame, std::vector<WaitPiece> waits,
                                 const ZoneSamples& samples, const UsualTimes& usual) {
  return CauseFinder(profile, frame, samples, usual).Find(std::move(waits));
}

}  // namespace perfkit::profile
