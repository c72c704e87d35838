// Finds what a wait was for, and which thread is to blame. Examinations of the waiting thread say what it waited for and
// which thread held the lock. Records of wake-ups say which thread ended the wait. Without these records the wait may
// have ended before the thread ran again, because after a wake-up it may have waited for a CPU. So a cause is known only
// if the thread was examined in the second half of its wait, or if the wait ends at a wake-up. A lock also needs proof
// that it stayed with one holder. And to blame a thread alone needs proof that this thread was not preempted itself.
#include <algorithm>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "src/profile/frame_causes.h"
#include "src/profile/stack_evidence.h"
#include "src/profile/thread_activity.h"
#include "src/profile/wait_text.h"
#include "src/sys/describe_call.h"

namespace perfkit::profile {
namespace {

using Kind = FrameCause::Kind;
using Confidence = FrameCause::Confidence;
using sys::AwaitedThing;

constexpr char kWakersTell[] = "SessionOptions::wakers, which needs CAP_PERFMON and tracefs";
constexpr char kPreemptersTell[] = "SessionOptions::preempters, which needs CAP_PERFMON and tracefs";
constexpr char kMoreCpu[] = "a less busy machine (the session's thread came too late)";
// Waits from this length on are examined if the session's thread gets a CPU: usual rounds are some 4 ms apart.
constexpr uint64_t kExaminedNs = 10'000'000;

class WaitJudge {
 public:
  WaitJudge(const Profile& profile, uint32_t thread, const WaitPiece& piece, bool finds_threads)
      : profile_(profile),
        thread_(thread),
        piece_(piece),
        sample_(profile.samples[piece.sample]),
        wait_(sample_.wait != ProfileSample::kNoWait ? profile.waits[sample_.wait] : ProfileWait{}),
        finds_threads_(finds_threads),
        wakers_tell_(profile.EventIndex("sched:sched_waking") == profile.events.size() ? kWakersTell : "") {
    cause_.stack = sample_.stack;
    cause_.quality = sample_.quality;
    cause_.wait = sample_.wait;
  }

  WaitCause Judge() {
    if (piece_.kind == FramePart::Kind::kPreempted) {
      Set(Kind::kPreempted, Confidence::kKnown, "");
      const bool was_read = wait_.preempter.is_known() || profile_.accounting.switches_read != 0;
      if (!was_read) cause_.remedy = kPreemptersTell;
    } else if (wait_.detail != 0 || wait_.blocked_in_syscall) {
      JudgeCall();
    } else {
      JudgeUnexamined();
    }
    return {std::move(cause_), inverted_ns_};
  }

 private:
  void Set(Kind kind, Confidence confidence, std::string what) {
    cause_.kind = kind;
    cause_.confidence = confidence;
    cause_.what = std::move(what);
  }

  bool IsProven() const {
    if (wait_.waker != 0) return true;
    const uint64_t proven_ns = wait_.examined_ns - std::min(wait_.examined_ns, sample_.time_ns);
    return proven_ns >= piece_.to_ns - std::min(piece_.to_ns, sample_.time_ns + proven_ns);
  }
  Confidence IfProven() const { return IsProven() ? Confidence::kKnown : Confidence::kLikely; }

  // A lock may pass from thread to thread while another one waits for it. It stayed with one holder from the first to the
  // last examination that found this holder, and until the end of the wait if this holder ended it.
  Confidence IfHeldByOne() const {
    if (wait_.holder_since_ns == 0) return Confidence::kLikely;
    const uint64_t from_ns = std::max(wait_.holder_since_ns, piece_.from_ns);
    const uint64_t to_ns = WakingThread() == wait_.holder ? piece_.to_ns : std::min(wait_.examined_ns, piece_.to_ns);
    const uint64_t held_ns = to_ns - std::min(to_ns, from_ns);
    return 2 * held_ns >= piece_.duration_ns() ? Confidence::kKnown : Confidence::kLikely;
  }

  void JudgeCall() {
    const std::string& detail = profile_.strings[wait_.detail];
    Set(Kind::kSystemCall, IfProven(), wait_.detail != 0 ? detail : absl::StrCat("system call ", wait_.syscall));
    switch (sys::AwaitedThingOf(wait_.blocked_in_syscall ? wait_.syscall : -1, wait_.arguments)) {
      case AwaitedThing::kOther: return;
      case AwaitedThing::kNoCall:
        if (detail == ProfileWait::kTraced || detail == ProfileWait::kStopped) return;
        if (wait_.examined_ns == 0) return Set(Kind::kIo, Confidence::kLikely, detail);
        return Set(Kind::kPageFaults, Confidence::kLikely, profile_.strings[sample_.label]);
      case AwaitedThing::kTime: cause_.kind = Kind::kSleep; return;
      case AwaitedThing::kDescriptor: return JudgeDescriptor();
      case AwaitedThing::kFutex: return JudgeFutex();
      case AwaitedThing::kFileLock: return JudgeOther(Kind::kFileLock);
    }
  }

  // A thread of this program may end a wait for a pipe or a socket. Waits for disks are ended by the kernel. The other end
  // of a pipe belongs to a thread of this program or of another one, that of a socket may be far away.
  void JudgeDescriptor() {
    const auto has = [&](std::string_view part) { return cause_.what.find(part) != std::string::npos; };
    const bool is_pipe = IsOnePipe(cause_.what);
    const bool may_be_thread = is_pipe || has("pipe:") || has("socket:") || (has("anon_inode:") && !has("[io_uring]"));
    if (is_pipe || (may_be_thread && WakingThread())) return JudgeOther(Kind::kOtherThread);
    cause_.kind = Kind::kIo;
  }

  // Another thread, perhaps of another program, ends the wait.
  void JudgeOther(Kind kind) {
    cause_.kind = kind;
    if (const std::optional<uint32_t> waker = WakingThread()) return BlameForWaking(*waker);
    if (wait_.waker == 0) cause_.remedy = wakers_tell_;
  }

  void JudgeFutex() {
    if (wait_.holder != ProfileWait::kNoHolder) {
      cause_.kind = Kind::kLock;
      cause_.confidence = IfHeldByOne();
      if (wait_.waker == 0 && cause_.confidence != Confidence::kKnown) cause_.remedy = wakers_tell_;
      Blame(wait_.holder);
      if (wait_.holder_stack == ProfileStack::kRoot) return;
      cause_.thread_stack = wait_.holder_stack;
      cause_.thread_quality = wait_.holder_quality;
      return;
    }
    const bool is_mutex = wait_.lock_kind == ProfileLock::kMutex || wait_.lock_kind == ProfileLock::kRwlock;
    const bool is_recorded = wait_.lock_kind != ProfileLock::kNone;
    // A stack from before the wait says nothing about it.
    const bool has_stack = sample_.quality != StackQuality::kLastKnown;
    const bool in_allocator = has_stack && (is_mutex || !is_recorded) && IsInAllocator(profile_, sample_.stack);
    const bool is_lock = is_mutex || (has_stack && !is_recorded && IsInLockCall(profile_, sample_.stack));
    cause_.kind = in_allocator ? Kind::kAllocatorLock : is_lock ? Kind::kLock : Kind::kOtherThread;
    BlameWaker();
  }

  void BlameWaker() {
    if (const std::optional<uint32_t> waker = WakingThread()) return BlameForWaking(*waker);
    if (cause_.kind == Kind::kOtherThread && profile_.strings[wait_.waker] == ProfileWait::kInterrupt) {
      return Set(Kind::kSleep, Confidence::kLikely, cause_.what);  // a timeout
    }
    if (wait_.waker != 0) return;
    cause_.remedy = wakers_tell_;
    // The stack alone proves that it was the allocator, so the cause stays known without a thread.
    if (cause_.kind == Kind::kAllocatorLock) return;
    cause_.confidence = Confidence::kLikely;
    if (!finds_threads_) return;
    const auto activity = ActivityBeside(profile_, thread_, piece_.from_ns, piece_.to_ns);
    if (const auto waker = LikelyWaker(profile_, activity, piece_.from_ns, piece_.to_ns)) Blame(*waker);
  }

  void JudgeUnexamined() {
    if (const std::optional<uint32_t> waker = WakingThread()) {
      Set(Kind::kOtherThread, Confidence::kLikely, "");
      cause_.remedy = piece_.duration_ns() < kExaminedNs ? "" : kMoreCpu;
      return BlameForWaking(*waker);
    }
    const std::string& waker = profile_.strings[wait_.waker];
    if (waker.ends_with(ProfileWait::kOfOtherProgram)) return Set(Kind::kOtherThread, Confidence::kLikely, "");
    Set(Kind::kUnknown, Confidence::kUnknown,
        waker.empty() ? "a wait that ended before it was examined" : absl::StrCat("a wait that was ended by ", waker));
    cause_.remedy = piece_.duration_ns() >= kExaminedNs ? kMoreCpu : wait_.waker == 0 ? wakers_tell_ : "";
  }

  // Returns the thread of this program that ended the wait, by its record. Returns nullopt if several threads have its
  // name and tid.
  std::optional<uint32_t> WakingThread() const {
    std::optional<uint32_t> found;
    for (uint32_t i = 0; wait_.waker != 0 && i < profile_.threads.size(); ++i) {
      if (profile_.strings[wait_.waker] != ThreadAndNumber(profile_, i)) continue;
      if (found) return std::nullopt;
      found = i;
    }
    return found;
  }

  // Where the thread was when it ended the wait, if its stack was taken then (SessionOptions::waker_stacks); else where
  // it was during the wait.
  void BlameForWaking(uint32_t thread) {
    Blame(thread);
    const uint64_t woken_ns = sample_.time_ns + sample_.weight;
    const size_t event = profile_.EventIndex("sched:sched_waking");
    auto sample = std::ranges::lower_bound(profile_.samples, woken_ns, {}, &ProfileSample::time_ns);
    for (; sample != profile_.samples.end() && sample->time_ns == woken_ns; ++sample) {
      if (sample->thread != thread || sample->event != event || OwnFunction(profile_, sample->stack).empty()) continue;
      cause_.thread_stack = sample->stack;
      cause_.thread_quality = sample->quality;
    }
  }

  void Blame(uint32_t thread) {
    cause_.thread = thread;
    const uint64_t middle_ns = piece_.from_ns + piece_.duration_ns() / 2;
    cause_.thread_zone = ZoneAt(profile_, thread, cause_.kind == Kind::kLock ? middle_ns : piece_.to_ns - 1);
    ThreadActivity activity;
    if (finds_threads_) {
      const auto all = ActivityBeside(profile_, thread_, piece_.from_ns, piece_.to_ns);
      if (const auto found = all.find(thread); found != all.end()) activity = found->second;
      cause_.thread_stack = activity.stack;
      cause_.thread_quality = activity.quality;
    }
    Invert(activity);
  }

  // The part of a wait in which the awaited thread was preempted is a priority inversion. If the samples and records show
  // less than half of what that thread did, it may have been preempted in the rest: then the cause is only likely.
  void Invert(const ThreadActivity& activity) {
    if (cause_.kind != Kind::kLock && cause_.kind != Kind::kOtherThread) return;
    const uint64_t ns = piece_.duration_ns(), preempted_ns = std::min(activity.preempted_ns, ns);
    if (4 * preempted_ns >= ns) inverted_ns_ = 4 * preempted_ns > 3 * ns ? ns : preempted_ns;
    const bool is_shown = 2 * activity.shown_ns >= ns - preempted_ns;
    if (cause_.kind == Kind::kLock || inverted_ns_ == ns || is_shown) return;
    if (cause_.confidence == Confidence::kKnown) cause_.confidence = Confidence::kLikely;
  }

  const Profile& profile_;
  const uint32_t thread_;
  const WaitPiece& piece_;
  const ProfileSample& sample_;
  const ProfileWait wait_;
  const bool finds_threads_;
  const char* const wakers_tell_;  // "" if wakers are recorded
  FrameCause cause_;
  uint64_t inverted_ns_ = 0;
};

}  // namespace

uint32_t DetailOf(const Profile& profile, const WaitPiece& piece) {
  const uint32_t wait = profile.samples[piece.sample].wait;
  return wait == ProfileSample::kNoWait ? 0 : profile.waits[wait].detail;
}

WaitCause CauseOfWait(const Profile& profile, uint32_t thread, const WaitPiece& piece, bool finds_threads) {
  return WaitJudge(profile, thread, piece, finds_threads).Judge();
}

}  // namespace perfkit::profile
