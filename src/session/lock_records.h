// Adds what perfkit::locks has recorded of waits for locks to the off-CPU samples of these waits.
//
//   recorded      |---- waits for the lock -------x----|        x: released
//   off the CPU      |== futex ==| |== futex ========|
//   added            lock, holder   lock, holder, waker; after x the thread only waited for a CPU
//
// A record exists once the call has returned, which may be later than the off-CPU samples of the wait. So it is added
// late: before samples are handed out, merged, or copied into a profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "perfkit/profile_builder.h"
#include "src/session/lock_names.h"
#include "src/sys/fork_registry.h"
#include "src/sys/lock_waits.h"

namespace perfkit::session {

// Which samples Explain changes.
struct ExplainedSamples {
  size_t first = 0;             // index of the first one in Profile::samples
  size_t first_whole = 0;       // samples before this index must not be split
  uint32_t off_cpu_event = 0;   // index in Profile::events
  uint32_t preempted_wait = 0;  // index in Profile::waits
};

// Not thread-safe.
class LockRecords {
 public:
  // Records waits of `threshold_ns` or longer. Returns nullptr if perfkit::locks is not linked, or has a reader.
  static std::unique_ptr<LockRecords> Start(uint64_t threshold_ns);
  // For tests: has only the records that Add adds.
  LockRecords() = default;
  ~LockRecords();
  LockRecords(const LockRecords&) = delete;
  LockRecords& operator=(const LockRecords&) = delete;

  // Reads the records so far.
  void Read();
  // Does the same, and stops recording: another reader may start.
  void Stop();
  // Adds a record. Those of one thread come in the order of their ends.
  void Add(const sys::LockWait& wait);

  // Adds to each off-CPU sample, if at least half of its time is in a record, what its thread waited for: ProfileWait's
  // lock, detail, call, holder and waker. Skips merged samples and those that were preempted. Splits a sample at the
  // release of its mutex or reader-writer lock; the rest is a new sample with `preempted_wait`. May be called again.
  void Explain(ProfileBuilder& builder, const ExplainedSamples& samples) const;
  // Adds the names of locks to the details of waits: "mutex 0x55d0c0 (g_lock in game)". Reads files. A wait that was
  // before its lock's module was mapped (NoteMapped) gets no name.
  void AddNames(ProfileBuilder& builder);
  // Notes that a file's code was mapped at this address.
  void NoteMapped(uint64_t address, uint64_t time_ns);
  // Drops the records of waits that ended at or before `until_ns`.
  void Forget(uint64_t until_ns);

  size_t bytes() const { return kept_ * sizeof(sys::LockWait); }
  uint64_t recorded() const { return recorded_; }
  // Returns how many waits have no record, because the buffer was full.
  uint64_t lost() const;

 private:
  explicit LockRecords(const sys::LockWaitSource* source) : source_(source) {}
  static void OnForkedChild(void* records);
  const sys::LockWait* Find(uint32_t tid, uint64_t from_ns, uint64_t to_ns) const;
  uint64_t MappedNs(const LockName& lock) const;

  const sys::LockWaitSource* source_ = nullptr;
  std::unordered_map<uint32_t, std::vector<sys::LockWait>> by_tid_;
  LockNames names_;
  std::map<uint64_t, uint64_t> mapped_ns_;  // when files' code was mapped, by its address
  uint64_t all_mapped_ns_ = 0;              // when mappings were forgotten: all code counts as mapped then
  size_t kept_ = 0;
  uint64_t recorded_ = 0;
  uint64_t lost_ = 0;  // lost() once the reader has stopped
  sys::ForkListener fork_listener_{OnForkedChild, this};
};

}  // namespace perfkit::session
