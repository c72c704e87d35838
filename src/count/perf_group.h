// One perf group, opened at every place of a target, and read with one system call a place.
#pragma once

#include <errno.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/count.h"
#include "perfkit/event.h"
#include "perfkit/target.h"
#include "src/open/open_event.h"
#include "src/open/place.h"
#include "src/sys/kernel.h"

namespace perfkit::count {

// An event of a set, on its way into a group.
struct Member {
  const EventConfig* event;
  size_t part;    // of event->parts: hybrid CPUs have one a core PMU, each in a group of its own
  uint8_t index;  // of the event in its set
};

// Values of the same event at several places, or of several parts, add up. Opened running; closed siblings first.
class PerfGroup {
 public:
  // `alone`: it will have one member for good, and is read in the plain format, which is a quarter cheaper.
  explicit PerfGroup(bool alone = false) : alone_(alone) {}
  PerfGroup(PerfGroup&&) = default;
  PerfGroup& operator=(PerfGroup&& other) noexcept;
  ~PerfGroup() { Close(); }

  // Adds `member` at all places of the group's target; the first one becomes the leader. On error nothing is added:
  // in a group that has members already, InvalidArgument can mean that it does not fit.
  absl::Status Add(const Member& member, const Target& target, bool user_only, const sys::Rights& rights);

  // Adds what the members in `wanted` (bit i: event i) have counted to `now.values` and `now.times`, which the caller
  // has zeroed for them. One without a number here is set in `now.missing`.
  void Read(uint32_t wanted, Snapshot& now) const noexcept;

  // To be called once all members are in. A sibling that joined a running leader counts nothing until the group is next
  // scheduled in (seen on 6.18, software events): switching the leader off and on does that. With the group flag of
  // these ioctls it would not: siblings would again join one by one.
  absl::Status Settle() const;

  // Switches the leader, and so the group, off or on: kIocDisable, kIocEnable.
  absl::Status Switch(unsigned long ioctl_request) const;

  bool empty() const { return members_.empty(); }
  const std::vector<uint8_t>& members() const { return members_; }
  // Whether any member counts user space only although more was asked.
  bool narrowed(size_t member) const { return narrowed_[member]; }
  // The descriptor of a member at the group's first place.
  int fd(size_t member) const { return sites_.front().fds[member].get(); }

  // Closes all descriptors, siblings before their leader.
  void Close() noexcept;

 private:
  struct Site {
    open::Place place;
    std::vector<sys::OwnedFd> fds;  // leader first
  };

  absl::Status FindPlaces(const Member& member, const Target& target);
  absl::Status OpenEverywhere(const Member& member, const Target& target, bool user_only, const sys::Rights& rights,
                              std::vector<open::OpenedEvent>& opened);
  absl::StatusOr<open::OpenedEvent> OpenAt(const Site& site, const Member& member, const Target& target, bool user_only,
                                           const sys::Rights& rights) const;
  void ReadSite(const Site& site, uint32_t wanted, Snapshot& now) const noexcept;

  std::vector<Site> sites_;
  std::vector<uint8_t> members_;  // the events' indices in the set
  uint32_t member_mask_ = 0;      // the same as bits
  std::vector<bool> narrowed_;
  bool extra_part_ = false;  // a hybrid event's second PMU: its enabled time is the first one's already
  bool alone_;
};

// Reading is inline for its price, not its size: after a system call the processor has forgotten where calls return to
// (the kernel's guard against speculation), and each return that then follows costs some 20 cycles. A read is one
// function that way, 2 % over the bare system call instead of 7 %.

inline constexpr size_t kGroupHeader = 3;

[[gnu::always_inline]] inline ssize_t ReadWords(int fd, uint64_t* words, size_t count) noexcept {
  ssize_t got;
  do {
    got = sys::kernel().read(fd, words, count * sizeof(uint64_t));
  } while (got < 0 && errno == EINTR);
  return got;
}

[[gnu::always_inline]] inline void PerfGroup::ReadSite(const Site& site, uint32_t wanted,
                                                       Snapshot& now) const noexcept {
  // Plain: value, enabled, running. Group: nr, enabled, running, then a value a member.
  std::array<uint64_t, kGroupHeader + kMaxEvents> words;
  const size_t size = alone_ ? kGroupHeader : kGroupHeader + members_.size();
  const ssize_t got = ReadWords(site.fds.front().get(), words.data(), size);
  // 0 bytes: a pinned group lost its counters. Less than asked, or another number of members: not our group.
  if (got != static_cast<ssize_t>(size * sizeof(uint64_t)) || (!alone_ && words[0] != members_.size())) {
    now.missing |= wanted & member_mask_;
    return;
  }
  const uint64_t* const values = alone_ ? &words[0] : &words[kGroupHeader];
  for (size_t m = 0; m < members_.size(); ++m) {
    const size_t i = members_[m];
    if ((wanted >> i & 1) == 0) continue;
    now.values[i] += values[m];
    if (!extra_part_) now.times[i].enabled_ns += words[1];
    now.times[i].running_ns += words[2];
  }
}

[[gnu::always_inline]] inline void PerfGroup::Read(uint32_t wanted, Snapshot& now) const noexcept {
  if ((wanted & member_mask_) == 0) return;
  for (const Site& site : sites_) ReadSite(site, wanted, now);
}

}  // namespace perfkit::count
