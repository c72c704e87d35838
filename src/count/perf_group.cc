// Opens and reads perf groups. A group has a site for each pair of thread and CPU of its target, and each site has the
// descriptors of all members. Members are added one by one; if one does not open at some site, it is removed from all
// sites again, so that a group is always complete. One read of a site's leader returns the values and times of all its
// members.
#include "src/count/perf_group.h"

#include <errno.h>

#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "src/sys/kernel.h"
#include "src/sys/perf_error.h"

namespace perfkit::count {
namespace {

uint64_t ReadFormat(GroupFormat format) {
  uint64_t bits = format.alone ? 0 : uint64_t{sys::kFormatGroup};
  if (format.times != GroupFormat::Times::kNone) bits |= sys::kFormatTotalTimeEnabled;
  if (format.times == GroupFormat::Times::kBoth) bits |= sys::kFormatTotalTimeRunning;
  return bits;
}

}  // namespace

PerfGroup& PerfGroup::operator=(PerfGroup&& other) noexcept {
  Close();
  sites_ = std::move(other.sites_);
  members_ = std::move(other.members_);
  member_mask_ = other.member_mask_;
  clock_ = other.clock_;
  can_lose_counters_ = other.can_lose_counters_;
  stopped_ = other.stopped_;
  user_only_ = std::move(other.user_only_);
  repeated_ = other.repeated_;
  only_cpus_ = std::move(other.only_cpus_);
  format_ = other.format_;
  return *this;
}

void PerfGroup::Close() noexcept {
  for (Site& site : sites_) {
    while (!site.fds.empty()) site.fds.pop_back();
  }
  sites_.clear();
}

absl::StatusOr<open::OpenedEvent> PerfGroup::OpenAt(const Site& site, const Member& member, const Target& target,
                                                    bool user_only, const sys::LazyRights& rights) const {
  const EventConfig& event = *member.event;
  // Only a leader is disabled until exec: siblings follow it.
  const bool leads = site.fds.empty();
  open::OpenRequest request = open::RequestFor(event, member.part);
  request.attr.read_format = ReadFormat(format_);
  request.attr.inherit = target.inherit && target.kind != Target::Kind::kThisThread;
  request.attr.inherit_thread = target.kind == Target::Kind::kAllThreads && target.inherit;
  request.attr.enable_on_exec = target.enable_on_exec && leads;
  request.attr.disabled = target.enable_on_exec && leads;
  if (user_only && !event.privilege_given && !event.kernel_side)
    request.attr.exclude_kernel = request.attr.exclude_hv = 1;
  request.pid = site.task_cpu.pid;
  request.cpu = site.task_cpu.cpu;
  request.group_fd = leads ? -1 : site.fds.front().get();
  request.optional_config1 = member.optional_config1;
  request.asked = absl::StrFormat("event '%s' on %s", event.name, open::Describe(target));
  return open::OpenEvent(request, rights);
}

absl::Status PerfGroup::FindTaskCpus(const Member& member, const Target& target) {
  const EventConfig& event = *member.event;
  const auto task_cpus = open::TaskCpusOf(target, event.parts[member.part].only_cpus);
  if (!task_cpus.ok()) return task_cpus.status();
  if (event.cpu_wide_only && task_cpus->front().cpu < 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("event '%s' is counted for whole CPUs only, not for threads, and was asked for %s. Remedy: "
                        "Target::Cpu or Target::System.",
                        event.name, open::Describe(target)));
  }
  for (const open::TaskCpu& task_cpu : *task_cpus) sites_.push_back({task_cpu, {}});
  only_cpus_ = event.parts[member.part].only_cpus;
  return absl::OkStatus();
}

// Fills `opened` with one event for each site. The event of a thread that has ended meanwhile is empty, unless all
// threads have ended.
absl::Status PerfGroup::OpenEverywhere(const Member& member, const Target& target, bool user_only,
                                       const sys::LazyRights& rights, std::vector<open::OpenedEvent>& opened) {
  absl::Status gone;
  bool any = false;
  for (const Site& site : sites_) {
    absl::StatusOr<open::OpenedEvent> event = OpenAt(site, member, target, user_only, rights);
    if (event.ok()) {
      opened.push_back(*std::move(event));
      any = true;
      // ESRCH: the thread has ended since it was listed.
    } else if (absl::IsNotFound(event.status()) && site.task_cpu.cpu < 0) {
      opened.emplace_back();
      gone = event.status();
    } else {
      return event.status();
    }
  }
  return any ? absl::OkStatus() : gone;
}

absl::Status PerfGroup::Add(const Member& member, const Target& target, bool user_only, const sys::LazyRights& rights) {
  if (members_.empty()) {
    if (absl::Status status = FindTaskCpus(member, target); !status.ok()) return status;
  }
  std::vector<open::OpenedEvent> opened;
  if (absl::Status status = OpenEverywhere(member, target, user_only, rights, opened); !status.ok()) {
    if (members_.empty()) sites_.clear();
    return status;
  }
  bool any_user_only = false;
  for (size_t i = 0; i < opened.size(); ++i) {
    any_user_only = any_user_only || opened[i].user_only;
    if (opened[i].fd) {
      sites_[i].fds.push_back(std::move(opened[i].fd));
    } else {
      while (!sites_[i].fds.empty()) sites_[i].fds.pop_back();  // The leader last.
    }
  }
  std::erase_if(sites_, [](const Site& site) { return site.fds.empty(); });
  members_.push_back(member.index);
  member_mask_ |= 1u << member.index;
  if (member.again && sites_.front().task_cpu.cpu < 0) repeated_ |= 1u << member.index;
  user_only_.push_back(any_user_only);
  can_lose_counters_ = can_lose_counters_ || member.event->pinned;
  return absl::OkStatus();
}

void PerfGroup::RemoveLast() noexcept {
  for (Site& site : sites_) site.fds.pop_back();
  member_mask_ &= ~(1u << members_.back());
  repeated_ &= ~(1u << members_.back());
  members_.pop_back();
  user_only_.pop_back();
}

bool PerfGroup::AdoptClock(uint8_t index) {
  if (format_.times == GroupFormat::Times::kNone || can_lose_counters_ || clock_ < kMaxEvents) return false;
  if (sites_.front().task_cpu.cpu >= 0) return false;  // The group's time is a CPU's, not the thread's.
  clock_ = index;
  member_mask_ |= 1u << index;
  return true;
}

ssize_t PerfGroup::ReadAgain(const Site& site, Words& words, ssize_t size) noexcept {
  ssize_t got = -1;
  for (int tries = 0; got < 0 && (errno == EINTR || (errno == ECHILD && tries < kTriesOfInherited)); ++tries) {
    got = sys::Read(site.fds.front().get(), words.all.data(), static_cast<size_t>(size));
  }
  return got;
}

void PerfGroup::KeepLargest(Site& site, Words& words) noexcept {
  for (size_t i = 0; i < site.largest.size(); ++i) {
    words.all[i] = site.largest[i] = std::max(site.largest[i], words.all[i]);
  }
}

void PerfGroup::ExpectEndingThreads() {
  if (members_.size() < 2) return;
  for (Site& site : sites_) site.largest.assign(1 + format_.time_words() + members_.size(), 0);
}

absl::Status PerfGroup::Settle() {
  // A leader alone has run since it was opened.
  if (members_.size() < 2) return absl::OkStatus();
  const absl::Status off = Switch(sys::kIocDisable);
  return off.ok() ? Switch(sys::kIocEnable) : off;
}

absl::Status PerfGroup::Switch(unsigned long ioctl_request) {
  stopped_ = ioctl_request == sys::kIocDisable;
  for (Site& site : sites_) {
    // While the group is off, its time enabled does not increase although the CPU is online (HasEnded).
    site.last_enabled_ns = 0;
    if (sys::kernel().ioctl(site.fds.front().get(), ioctl_request, 0) != 0) {
      return sys::PerfError(sys::PerfCall::kIoctl, errno, "switching a group on or off");
    }
  }
  return absl::OkStatus();
}

}  // namespace perfkit::count
