// What perfkit::locks has recorded of waits for locks, told to the times off the CPU that belong to them.
//
//   recorded      |---- waits for the lock -------x----|        x: released
//   off the CPU      |== futex ==| |== futex ========|
//   told             lock, holder   lock, holder, waker; after x the thread only waited for a CPU
//
// A record is there once the call has returned, which may be after the samples of its times off the CPU. So samples are
// told late: before they are handed out, merged, or copied into a profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "perfkit/profile_builder.h"
#include "src/session/lock_names.h"
#include "src/sys/fork_registry.h"
#include "src/sys/lock_waits.h"

namespace perfkit::session {

// Which samples Explain tells.
struct ExplainedSamples {
  size_t first = 0;             // from this one on
  size_t first_whole = 0;       // before this one, no sample may be split
  uint32_t off_cpu_event = 0;   // index in Profile::events
  uint32_t preempted_wait = 0;  // index in Profile::waits
};

// Not thread-safe.
class LockRecords {
 public:
  // Records waits of `threshold_ns` or longer. Returns nullptr if perfkit::locks is not linked, or has a reader.
  static std::unique_ptr<LockRecords> Start(uint64_t threshold_ns);
  // For tests: nothing but what Add adds.
  LockRecords() = default;
  ~LockRecords();
  LockRecords(const LockRecords&) = delete;
  LockRecords& operator=(const LockRecords&) = delete;

  // Takes what has been recorded.
  void Read();
  // The same; from now on nothing is recorded, and another reader may start.
  void Stop();
  // Records of a thread come in the order of their ends.
  void Add(const sys::LockWait& wait);

  // Tells single samples of times off the CPU that are not preempted which lock their thread waited for, if at least
  // half of the time is in a record: ProfileWait's lock, detail, call, holder and waker. A sample that ends after the
  // lock was released is split there; the rest is a new sample, of `preempted_wait`. May be called again.
  void Explain(ProfileBuilder& builder, const ExplainedSamples& samples) const;
  // Adds the names of locks to the details of waits: "mutex 0x55d0c0 (g_lock in game)". Reads files.
  void AddNames(ProfileBuilder& builder);
  // Other modules may be mapped since then. Locks of earlier waits that have no name by now get none.
  void ForgetNames(ProfileBuilder& builder, uint64_t since_ns);
  // Drops the records of waits that had ended by then.
  void Forget(uint64_t until_ns);

  size_t bytes() const { return kept_ * sizeof(sys::LockWait); }
  uint64_t recorded() const { return recorded_; }
  // How many waits have no record, because the buffer was full.
  uint64_t lost() const;

 private:
  explicit LockRecords(const sys::LockWaitSource* source) : source_(source) {}
  static void OnForkedChild(void* records);
  const sys::LockWait* Find(uint32_t tid, uint64_t from_ns, uint64_t to_ns) const;
  bool NeedsName(const Profile& profile, const ProfileWait& wait) const;
  void AddKnownNames(ProfileBuilder& builder) const;

  const sys::LockWaitSource* source_ = nullptr;
  std::unordered_map<uint32_t, std::vector<sys::LockWait>> by_tid_;
  LockNames names_;
  uint64_t mapped_ns_ = 0;  // since when modules are mapped as they are
  size_t kept_ = 0;
  uint64_t recorded_ = 0;
  uint64_t lost_ = 0;  // of a reader that has stopped
  sys::ForkListener fork_listener_{OnForkedChild, this};
};

}  // namespace perfkit::session
