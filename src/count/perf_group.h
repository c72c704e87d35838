// One perf group, opened on each thread and CPU of a target, and read with one system call for each.
#pragma once

#include <errno.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/count.h"
#include "perfkit/event.h"
#include "perfkit/target.h"
#include "src/open/open_event.h"
#include "src/open/task_cpu.h"
#include "src/sys/read.h"

namespace perfkit::count {

// An event of a set that is to be added to a group.
struct Member {
  const EventConfig* event;
  size_t part;    // Index in event->parts: a hybrid CPU has one part for each core PMU, each in its own group.
  uint8_t index;  // Index of the event in its set.
  uint64_t optional_config1 = 0;  // As OpenRequest::optional_config1.
  bool again = false;             // True: another group of the same threads has it, too.
};

// The form in which the kernel writes a group's numbers: PERF_FORMAT_*.
struct GroupFormat {
  enum class Times : uint8_t { kNone, kEnabled, kBoth };
  bool alone = false;  // One member forever: without the number of members, which makes the read a quarter cheaper.
  Times times = Times::kBoth;  // Enabled, running: only events that can multiplex need both.

  constexpr size_t time_words() const { return static_cast<size_t>(times); }
};

// The values of one event at several sites (pairs of thread and CPU), or of several parts, are added up. Opened
// running; closes siblings before leaders. Not thread-safe.
class PerfGroup {
 public:
  explicit PerfGroup(GroupFormat format = {}) : format_(format) {}
  PerfGroup(PerfGroup&&) = default;
  PerfGroup& operator=(PerfGroup&& other) noexcept;
  ~PerfGroup() { Close(); }

  // Adds `member` at all sites of the group's target; the first one becomes the leader. Sites whose thread has ended
  // are left out from then on. On an error nothing is added. In a group with members, InvalidArgument can mean that it
  // does not fit.
  absl::Status Add(const Member& member, const Target& target, bool user_only, const sys::LazyRights& rights);

  // Removes the member that was added last.
  void RemoveLast() noexcept;

  // Adds the counts of the members in `wanted` (bit i: event i) to `now.values` and `now.times`, which the caller has
  // zeroed for them. Sets the bit in `now.missing` of each event without a number.
  void Read(uint32_t wanted, Snapshot& now) noexcept;

  // Makes the group's time enabled the number of event `index`, the thread's task-clock. Time enabled runs whenever the
  // thread runs, on a counter or not, and each read of the group returns it. On Linux 6.18 the two differ by less than
  // the time between their readings. Returns false if the group has no such time, or could lose it.
  bool AdoptClock(uint8_t index);

  // Must be called once all members are added. A sibling that joined a running leader counts nothing until the group is
  // next scheduled in (seen on Linux 6.18, software events); disabling and enabling the leader does that. With the
  // group flag of these ioctls it would not: siblings would join one by one again.
  absl::Status Settle();

  // Must be called once all members are added, if threads inherit them: no number decreases from then on (ReadSite).
  void ExpectEndingThreads();

  // Enables or disables the leader and so the group: kIocEnable, kIocDisable.
  absl::Status Switch(unsigned long ioctl_request);

  bool empty() const { return members_.empty(); }
  size_t task_cpus() const { return sites_.size(); }
  // Returns the CPUs on which the group counts: those of one kind of core; empty means all.
  const std::vector<int>& only_cpus() const { return only_cpus_; }
  GroupFormat format() const { return format_; }
  const std::vector<uint8_t>& members() const { return members_; }
  uint8_t clock() const { return clock_; }
  // Returns true if the member was restricted to user space because this user may not observe the kernel.
  bool user_only(size_t member) const { return user_only_[member]; }
  // Returns the descriptor of a member at the group's first site.
  int fd(size_t member) const { return sites_.front().fds[member].get(); }

  // Closes all descriptors, siblings before their leader.
  void Close() noexcept;

 private:
  // Most reads that fail with ECHILD succeed at the next three tries.
  static constexpr int kTriesOfInherited = 64;

  struct Site {
    open::TaskCpu task_cpu;
    std::vector<sys::OwnedFd> fds;    // The leader first.
    uint64_t last_enabled_ns = 0;     // For a CPU: time enabled at the previous read.
    std::vector<uint64_t> largest{};  // The largest words so far, if threads inherit this group; else empty.
  };

  absl::Status FindTaskCpus(const Member& member, const Target& target);
  absl::Status OpenEverywhere(const Member& member, const Target& target, bool user_only, const sys::LazyRights& rights,
                              std::vector<open::OpenedEvent>& opened);
  absl::StatusOr<open::OpenedEvent> OpenAt(const Site& site, const Member& member, const Target& target, bool user_only,
                                           const sys::LazyRights& rights) const;
  // The numbers of one site, as the kernel writes them.
  struct Words;
  bool ReadSite(Site& site, Words& words) const noexcept;
  // After a read that has failed. Return the bytes of the last one, and make no word smaller than before.
  static ssize_t ReadAgain(const Site& site, Words& words, ssize_t size) noexcept;
  static void KeepLargest(Site& site, Words& words) noexcept;
  bool HasEnded(Site& site, const Words& words) const noexcept;

  std::vector<Site> sites_;
  std::vector<uint8_t> members_;  // Indices of the events in the set.
  uint32_t member_mask_ = 0;      // The same as bits, with clock_.
  uint8_t clock_ = kMaxEvents;    // The event whose number is the time enabled; kMaxEvents means none.
  bool can_lose_counters_ = false;
  bool stopped_ = false;  // Disabled by Switch.
  std::vector<bool> user_only_;
  // Bit i: event i is in another group too, and its time enabled is counted there, because both run while the thread
  // runs. Not for CPUs: each part has CPUs of its own.
  uint32_t repeated_ = 0;
  std::vector<int> only_cpus_;
  GroupFormat format_;
};

// Reads are inline to be cheap (src/sys/read.h): then a read is one function, and takes 2 % longer than the bare system
// call instead of 7 %.

// Without PERF_FORMAT_GROUP: value, times. With it: number of members, times, then a value for each member. Times:
// enabled, running.
struct PerfGroup::Words {
  std::array<uint64_t, 3 + kMaxEvents> all;
  const uint64_t* values;
  const uint64_t* times;
};

// Returns false if there is no number: 0 bytes mean that a pinned group lost its counters; fewer bytes than requested,
// or another number of members, mean that the data is not of this group. While a thread that has inherited the group
// ends, a read fails with ECHILD, or lacks what its siblings have counted: then the numbers stay what they were.
[[gnu::always_inline]] inline bool PerfGroup::ReadSite(Site& site, Words& words) const noexcept {
  const size_t count = members_.size() + (format_.alone ? 0 : 1) + format_.time_words();
  const auto size = static_cast<ssize_t>(count * sizeof(uint64_t));
  words.times = words.all.data() + 1;
  words.values = words.all.data() + (format_.alone ? 0 : count - members_.size());
  ssize_t got = sys::Read(site.fds.front().get(), words.all.data(), static_cast<size_t>(size));
  if (got < 0) [[unlikely]]
    got = ReadAgain(site, words, size);
  if (got != size || (!format_.alone && words.all[0] != members_.size())) return false;
  if (!site.largest.empty()) [[unlikely]]
    KeepLargest(site, words);
  return true;
}

// Returns true if a CPU has gone offline. Time enabled of a CPU's event always increases until then. The kernel then
// ends its events for good: their numbers do not change even when the CPU comes back, and must not be taken for counts
// of 0.
[[gnu::always_inline]] inline bool PerfGroup::HasEnded(Site& site, const Words& words) const noexcept {
  if (site.task_cpu.cpu < 0 || stopped_) return false;
  const uint64_t before = site.last_enabled_ns;
  site.last_enabled_ns = words.times[0];
  return before != 0 && before == words.times[0];
}

[[gnu::always_inline]] inline void PerfGroup::Read(uint32_t wanted, Snapshot& now) noexcept {
  if ((wanted & member_mask_) == 0) return;
  for (Site& site : sites_) {
    Words words;
    if (!ReadSite(site, words) || HasEnded(site, words)) {
      now.missing |= wanted & member_mask_;
      continue;
    }
    if (clock_ < kMaxEvents && (wanted >> clock_ & 1) != 0) now.values[clock_] += words.times[0];
    for (size_t m = 0; m < members_.size(); ++m) {
      const size_t i = members_[m];
      if ((wanted >> i & 1) == 0) continue;
      now.values[i] += words.values[m];
      if (format_.times != GroupFormat::Times::kBoth) continue;
      if ((repeated_ >> i & 1) == 0) now.times[i].enabled_ns += words.times[0];
      now.times[i].running_ns += words.times[1];
    }
  }
}

}  // namespace perfkit::count
