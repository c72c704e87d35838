// One perf group, opened at every place of a target, and read with one system call a place.
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

// An event of a set, on its way into a group.
struct Member {
  const EventConfig* event;
  size_t part;                  // of event->parts: hybrid CPUs have one a core PMU, each in a group of its own
  uint8_t index;                // of the event in its set
  uint64_t optional_config1 = 0;  // see OpenRequest
  bool again = false;           // it is in another group of the same threads already
};

// How the kernel writes a group's numbers: PERF_FORMAT_*.
struct GroupFormat {
  enum class Times : uint8_t { kNone, kEnabled, kBoth };
  bool alone = false;  // one member for good: without the number of members, which makes the read a quarter cheaper
  Times times = Times::kBoth;  // enabled, running: only what can multiplex needs both

  constexpr size_t time_words() const { return static_cast<size_t>(times); }
};

// Values of the same event at several places, or of several parts, add up. Opened running; closed siblings first.
class PerfGroup {
 public:
  explicit PerfGroup(GroupFormat format = {}) : format_(format) {}
  PerfGroup(PerfGroup&&) = default;
  PerfGroup& operator=(PerfGroup&& other) noexcept;
  ~PerfGroup() { Close(); }

  // Adds `member` at all places of the group's target; the first one becomes the leader. Places whose thread has ended
  // are left out from then on. On error nothing is added: in a group that has members already, InvalidArgument can mean
  // that it does not fit.
  absl::Status Add(const Member& member, const Target& target, bool user_only, const sys::Rights& rights);

  // Takes the member that was added last out again.
  void RemoveLast() noexcept;

  // Adds what the members in `wanted` (bit i: event i) have counted to `now.values` and `now.times`, which the caller
  // has zeroed for them. One without a number here is set in `now.missing`.
  void Read(uint32_t wanted, Snapshot& now) noexcept;

  // Makes the group's time enabled the number of event `index`, which is the thread's task-clock: time enabled runs
  // whenever the thread runs, on a counter or not, and is read with the members for nothing. On 6.18 the two differ by
  // less than the time between their readings. False: the group has no such time, or could lose it.
  bool AdoptClock(uint8_t index);

  // To be called once all members are in. A sibling that joined a running leader counts nothing until the group is next
  // scheduled in (seen on 6.18, software events): switching the leader off and on does that. With the group flag of
  // these ioctls it would not: siblings would again join one by one.
  absl::Status Settle();

  // Switches the leader, and so the group, off or on: kIocDisable, kIocEnable.
  absl::Status Switch(unsigned long ioctl_request);

  bool empty() const { return members_.empty(); }
  size_t task_cpus() const { return sites_.size(); }
  // Where its leader counts, and so all members: a kind of core's CPUs; empty: anywhere.
  const std::vector<int>& only_cpus() const { return only_cpus_; }
  GroupFormat format() const { return format_; }
  const std::vector<uint8_t>& members() const { return members_; }
  uint8_t clock() const { return clock_; }
  // Whether any member counts user space only although more was asked.
  bool user_only(size_t member) const { return user_only_[member]; }
  // The descriptor of a member at the group's first place.
  int fd(size_t member) const { return sites_.front().fds[member].get(); }

  // Closes all descriptors, siblings before their leader.
  void Close() noexcept;

 private:
  struct Site {
    open::TaskCpu task_cpu;
    std::vector<sys::OwnedFd> fds;  // leader first
    uint64_t last_enabled_ns = 0;   // of a CPU: of the read before
  };

  absl::Status FindTaskCpus(const Member& member, const Target& target);
  absl::Status OpenEverywhere(const Member& member, const Target& target, bool user_only, const sys::Rights& rights,
                              std::vector<open::OpenedEvent>& opened);
  absl::StatusOr<open::OpenedEvent> OpenAt(const Site& site, const Member& member, const Target& target, bool user_only,
                                           const sys::Rights& rights) const;
  // Numbers of one place, as the kernel writes them.
  struct Words;
  bool ReadSite(const Site& site, Words& words) const noexcept;
  bool HasEnded(Site& site, const Words& words) const noexcept;

  std::vector<Site> sites_;
  std::vector<uint8_t> members_;  // the events' indices in the set
  uint32_t member_mask_ = 0;      // the same as bits, and clock_
  uint8_t clock_ = kMaxEvents;    // the event that is the time enabled; kMaxEvents: none
  bool can_lose_counters_ = false;
  bool stopped_ = false;  // by Switch
  std::vector<bool> user_only_;
  // Bit i: event i is in another group, too, and its enabled time is counted there: both run while the thread runs. Not
  // for CPUs, of which each part has others.
  uint32_t repeated_ = 0;
  std::vector<int> only_cpus_;
  GroupFormat format_;
};

// Reading is inline for its price: see src/sys/read.h. A read is one function that way, and dearer than the bare system
// call by 2 % instead of 7 %.

// Plain: value, times. Group: number of members, times, then a value a member. Times: enabled, running.
struct PerfGroup::Words {
  std::array<uint64_t, 3 + kMaxEvents> all;
  const uint64_t* values;
  const uint64_t* times;
};

// False when there is no number. 0 bytes: a pinned group lost its counters. Less than asked, or another number of
// members: not our group.
[[gnu::always_inline]] inline bool PerfGroup::ReadSite(const Site& site, Words& words) const noexcept {
  const size_t count = members_.size() + (format_.alone ? 0 : 1) + format_.time_words();
  const auto size = static_cast<ssize_t>(count * sizeof(uint64_t));
  words.times = words.all.data() + 1;
  words.values = words.all.data() + (format_.alone ? 0 : count - members_.size());
  ssize_t got;
  do {
    got = sys::Read(site.fds.front().get(), words.all.data(), static_cast<size_t>(size));
  } while (got < 0 && errno == EINTR);
  return got == size && (format_.alone || words.all[0] == members_.size());
}

// Time enabled of a CPU's event always moves on, until the CPU goes offline: then the kernel ends its events for good,
// and their numbers stand still even when it comes back. That is no count of 0.
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
