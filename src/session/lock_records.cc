// A record proves what its thread waited for during all of its time. So it also explains waits that no examination
// found, and waits that were examined only near their beginning. It has the thread that held the lock when the wait
// began. Whether that thread held the lock until the release is known from LockWait::has_one_holder.
#include "src/session/lock_records.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

#include "absl/strings/str_format.h"
#include "src/sys/clock.h"
#include "src/sys/futex_lock.h"

namespace perfkit::session {
namespace {

using sys::LockKind;

struct KindText {
  ProfileLock kind;
  std::string_view text;
};

KindText KindOf(const sys::LockWait& wait) {
  switch (wait.kind) {
    case LockKind::kMutex: return {ProfileLock::kMutex, "mutex"};
    case LockKind::kRwlock: return {ProfileLock::kRwlock, "reader-writer lock"};
    case LockKind::kCondition: return {ProfileLock::kCondition, "condition"};
    case LockKind::kSemaphore: return {ProfileLock::kSemaphore, "semaphore"};
  }
  return {};
}

// The threads of a profile by tid. Several threads may have had the same tid, one after the other.
class ThreadsByTid {
 public:
  explicit ThreadsByTid(const Profile& profile) : profile_(profile) {
    for (uint32_t i = 0; i < profile.threads.size(); ++i) {
      if (!profile.threads[i].is_sum()) by_tid_[profile.threads[i].tid].push_back(i);
    }
  }

  // Returns the thread that had the tid at that time: the latest one that had begun by then, or else the first of all.
  std::optional<uint32_t> Find(uint32_t tid, uint64_t time_ns) const {
    const auto found = by_tid_.find(tid);
    if (tid == 0 || found == by_tid_.end()) return std::nullopt;
    std::optional<uint32_t> latest;
    for (const uint32_t thread : found->second) {
      const uint64_t first_ns = profile_.threads[thread].first_ns;
      const uint64_t known_ns = latest ? profile_.threads[*latest].first_ns : UINT64_MAX;
      const bool is_better = first_ns <= time_ns ? known_ns > time_ns || first_ns >= known_ns : first_ns < known_ns;
      if (is_better) latest = thread;
    }
    return latest;
  }

 private:
  const Profile& profile_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> by_tid_;
};

// Adds what `record` says to the wait of `sample`. `end_ns`: the end of the sample, or of the wait if that is earlier.
void Tell(ProfileBuilder& builder, const ThreadsByTid& threads, const sys::LockWait& record, uint64_t end_ns,
          ProfileSample& sample) {
  const bool is_new = sample.wait == ProfileSample::kNoWait;
  ProfileWait wait = is_new ? ProfileWait{} : builder.profile().waits[sample.wait];
  wait.lock_kind = KindOf(record).kind;
  wait.lock = record.lock;
  wait.detail = builder.String(absl::StrFormat("%s 0x%x", KindOf(record).text, record.lock));
  if (!wait.blocked_in_syscall) {
    wait.blocked_in_syscall = true;
    wait.syscall = sys::kFutexCall;
    wait.arguments = {record.lock};
  }
  wait.examined_ns = std::max(wait.examined_ns, std::min(record.to_ns, end_ns));
  const std::optional<uint32_t> holder = threads.Find(record.holder, record.from_ns);
  const std::optional<uint32_t> releaser = threads.Find(record.releaser, record.released_ns);
  if (wait.holder == ProfileWait::kNoHolder && holder) wait.holder = *holder;
  if (holder && wait.holder == *holder && record.has_one_holder) wait.holder_since_ns = record.from_ns;
  const bool ends_here = sample.time_ns <= record.released_ns && record.released_ns <= end_ns;
  if (wait.waker == 0 && releaser && ends_here) {
    const Profile& profile = builder.profile();
    wait.waker =
        builder.String(absl::StrFormat("%s (%d)", profile.ThreadName(*releaser), profile.threads[*releaser].tid));
  }
  if (is_new) {
    sample.wait = builder.AddWait(wait);
  } else {
    builder.profile().waits[sample.wait] = wait;
  }
}

// Returns true if there is nothing to add: the thread was preempted, its wait has a record already, or it slept in a
// signal handler that had interrupted the wait for the lock.
bool IsTold(const ProfileWait& wait) {
  const bool in_handler =
      wait.blocked_in_syscall && wait.syscall != sys::kFutexCall && wait.syscall != sys::kRestartCall;
  return wait.preempted || in_handler || wait.lock_kind != ProfileLock::kNone;
}

// The part of a condition's record in which the thread waited for the mutex. Who had that then is not recorded.
sys::LockWait MutexOf(const sys::LockWait& condition) {
  return {.lock = condition.mutex,
          .from_ns = condition.from_ns,
          .to_ns = condition.to_ns,
          .tid = condition.tid,
          .kind = LockKind::kMutex,
          .acquired = condition.acquired};
}

// Returns true if the thread had been signalled, and waited for the mutex of the condition. The address that it slept
// at proves that, or refutes it. Otherwise the time of the first signal, or of the timeout, tells.
bool IsForMutex(const sys::LockWait& record, const ProfileWait& wait, uint64_t from_ns) {
  if (record.kind != LockKind::kCondition || record.mutex == 0) return false;
  if (wait.blocked_in_syscall && wait.syscall == sys::kFutexCall) {
    const uint64_t slept_at = wait.arguments[0];
    if (slept_at - record.lock < sys::kConditionBytes) return false;
    if (slept_at - record.mutex < sys::kMutexBytes) return true;
  }
  return record.signalled_ns != 0 && from_ns >= record.signalled_ns;
}

// Returns false for conditions and semaphores: they may be signalled more than once, and after a signal a thread may
// wait for the mutex of the condition.
bool EndsAtRelease(LockKind kind) { return kind == LockKind::kMutex || kind == LockKind::kRwlock; }

}  // namespace

std::unique_ptr<LockRecords> LockRecords::Start(uint64_t threshold_ns) {
  const sys::LockWaitSource* const source = sys::LockWaits();
  if (source == nullptr || !source->start(threshold_ns)) return nullptr;
  return std::unique_ptr<LockRecords>(new LockRecords(source));
}

LockRecords::~LockRecords() { Stop(); }

void LockRecords::Stop() {
  if (source_ == nullptr) return;
  Read();
  lost_ = source_->lost();
  source_->stop();
  source_ = nullptr;
}

void LockRecords::OnForkedChild(void* records) {
  auto* const self = static_cast<LockRecords*>(records);
  if (self->source_ != nullptr) self->source_->on_forked_child();
}

void LockRecords::Read() {
  if (source_ == nullptr) return;
  const uint64_t offset_ns = sys::ClockOffsetNs(CLOCK_MONOTONIC);
  for (sys::LockWait wait; source_->take(wait);) {
    wait.from_ns -= offset_ns, wait.to_ns -= offset_ns;
    if (wait.releaser != 0) wait.released_ns -= offset_ns;
    if (wait.signalled_ns != 0) wait.signalled_ns -= offset_ns;
    Add(wait);
  }
}

void LockRecords::Add(const sys::LockWait& wait) {
  ++recorded_, ++kept_;
  by_tid_[wait.tid].push_back(wait);
}

uint64_t LockRecords::lost() const { return source_ != nullptr ? source_->lost() : lost_; }

// Returns the record that has at least half of the time; nullptr if none has.
const sys::LockWait* LockRecords::Find(uint32_t tid, uint64_t from_ns, uint64_t to_ns) const {
  const auto found = by_tid_.find(tid);
  if (found == by_tid_.end()) return nullptr;
  const std::vector<sys::LockWait>& waits = found->second;
  const auto ends_before = [](const sys::LockWait& wait, uint64_t time_ns) { return wait.to_ns <= time_ns; };
  for (auto wait = std::lower_bound(waits.begin(), waits.end(), from_ns, ends_before); wait != waits.end(); ++wait) {
    if (wait->from_ns >= to_ns) break;
    const uint64_t common_ns = std::min(wait->to_ns, to_ns) - std::max(wait->from_ns, from_ns);
    if (2 * common_ns >= to_ns - from_ns) return &*wait;
  }
  return nullptr;
}

void LockRecords::Explain(ProfileBuilder& builder, const ExplainedSamples& which) const {
  if (by_tid_.empty()) return;
  Profile& profile = builder.profile();
  const ThreadsByTid threads(profile);
  const size_t end = profile.samples.size();
  for (size_t i = which.first; i < end; ++i) {
    ProfileSample sample = profile.samples[i];
    if (sample.event != which.off_cpu_event || sample.merged() || sample.weight == 0) continue;
    const bool has_wait = sample.wait != ProfileSample::kNoWait;
    if (has_wait && IsTold(profile.waits[sample.wait])) continue;
    const uint64_t end_ns = sample.time_ns + sample.weight;
    const sys::LockWait* record = Find(profile.threads[sample.thread].tid, sample.time_ns, end_ns);
    if (record == nullptr) continue;
    sys::LockWait of_mutex;
    if (IsForMutex(*record, has_wait ? profile.waits[sample.wait] : ProfileWait{}, sample.time_ns)) {
      of_mutex = MutexOf(*record);
      record = &of_mutex;
    }
    const bool was_woken = has_wait && profile.waits[sample.wait].waker != 0;
    const bool splits = i >= which.first_whole && !was_woken && EndsAtRelease(record->kind) &&
                        sample.time_ns < record->released_ns && record->released_ns < end_ns;
    const uint64_t wait_end_ns = splits ? record->released_ns : end_ns;
    sample.weight = wait_end_ns - sample.time_ns;
    Tell(builder, threads, *record, wait_end_ns, sample);
    profile.samples[i] = sample;
    if (!splits) continue;
    sample.time_ns = wait_end_ns;
    sample.weight = end_ns - wait_end_ns;
    sample.wait = which.preempted_wait;
    builder.AddSample(sample);
  }
}

// Returns when the lock's module was mapped. Only mappings of code are known, and a module's are among its others.
uint64_t LockRecords::MappedNs(const LockName& lock) const {
  uint64_t latest_ns = all_mapped_ns_;
  const auto end = mapped_ns_.lower_bound(lock.module_end);
  for (auto mapped = mapped_ns_.lower_bound(lock.module_begin); mapped != end; ++mapped) {
    latest_ns = std::max(latest_ns, mapped->second);
  }
  return latest_ns;
}

void LockRecords::AddNames(ProfileBuilder& builder) {
  Profile& profile = builder.profile();
  std::vector<ProfileWait*> unnamed;
  std::vector<uint64_t> locks;
  for (ProfileWait& wait : profile.waits) {
    if (wait.lock_kind == ProfileLock::kNone || profile.strings[wait.detail].ends_with(')')) continue;
    unnamed.push_back(&wait);
    locks.push_back(wait.lock);
  }
  names_.LookUp(locks);
  for (ProfileWait* const wait : unnamed) {
    const LockName& lock = names_.Find(wait->lock);
    if (lock.name.empty() || wait->examined_ns < MappedNs(lock)) continue;
    wait->detail = builder.String(absl::StrFormat("%s (%s)", profile.strings[wait->detail], lock.name));
  }
}

void LockRecords::NoteMapped(uint64_t address, uint64_t time_ns) {
  constexpr size_t kMaxMappings = 16 << 10;  // bounds the memory for a program that maps code all the time
  if (mapped_ns_.size() >= kMaxMappings) {
    mapped_ns_.clear();
    all_mapped_ns_ = std::max(all_mapped_ns_, time_ns);
  }
  uint64_t& mapped_ns = mapped_ns_[address];
  mapped_ns = std::max(mapped_ns, time_ns);
}

void LockRecords::Forget(uint64_t until_ns) {
  for (auto thread = by_tid_.begin(); thread != by_tid_.end();) {
    std::vector<sys::LockWait>& waits = thread->second;
    kept_ -= std::erase_if(waits, [&](const sys::LockWait& wait) { return wait.to_ns <= until_ns; });
    thread = waits.empty() ? by_tid_.erase(thread) : std::next(thread);
  }
}

}  // namespace perfkit::session
