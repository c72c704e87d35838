// Builds a Source: for each event the first path that works.
//
// An object is for one attempt: it lives during Open, and results in a Source or a Status.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "src/count/source.h"

namespace perfkit::count {

// Events as they were written: those of one inner vector are counted together.
using Groups = std::span<const std::vector<EventConfig>>;

class SourceBuilder {
 public:
  // `banned`, bit i: the self-test found that the inline paths of event i are wrong. `migrations_by_records`: whether
  // migrations are counted from the records of switches; nullopt: if this thread has no right to the kernel's count.
  SourceBuilder(Groups groups, const Target& target, const CounterOptions& options, uint32_t banned,
                std::optional<bool> migrations_by_records = std::nullopt);

  absl::StatusOr<std::unique_ptr<Source>> Build();

 private:
  size_t FirstLike(size_t i) const;
  void ChooseFormat();
  absl::Status Assign(size_t i, bool strict_group);
  absl::Status Try(ReadPath path, size_t i, bool strict_group);
  absl::Status OpenClock(size_t i);
  absl::Status OpenMigrations(size_t i);
  absl::Status OpenRing(size_t i);
  absl::Status OpenPeriodOne(size_t i);
  absl::Status OpenUsage(size_t i);
  absl::Status OpenWrappedMalloc(size_t i);
  absl::Status OpenThreadIo(size_t i);
  absl::Status OpenUserPage(size_t i, bool strict_group);
  absl::Status OpenInGroup(size_t i, bool strict_group, uint64_t optional_config1 = 0);
  bool AdoptClock(size_t i);
  absl::Status AddPart(const Member& member, PerfGroup& group);
  // A part of an event, and the index in Source::groups_ of the open group for it.
  struct PartInGroup {
    size_t part, group;
  };
  std::vector<size_t> PartsHere(size_t i) const;
  std::vector<PartInGroup> GroupsFor(size_t i, bool strict_group) const;
  absl::Status Join(size_t i, bool strict_group, uint64_t optional_config1);
  absl::Status OpenEnergy(size_t i);
  absl::Status OpenNewGroups(size_t i, uint64_t optional_config1);
  void FlagExclusions(size_t i);
  PerfGroup& GroupOf(size_t i);
  bool ClockCarriesSwitches() const;
  absl::Status NeedSwitchRing();
  absl::Status ExplainKernelSide(size_t i, const absl::Status& status) const;

  absl::Status NoSuchPath(size_t i, ReadPath path) const {
    const std::string_view remedy =
        options_.only_path ? ". Remedy: leave CounterOptions::only_path empty, and another way is chosen" : "";
    return absl::UnavailableError(
        absl::StrFormat("%s: it cannot be read by %s%s", Asked(i), ReadPathName(path), remedy));
  }
  absl::Status CheckOwnThread(size_t i) const;
  open::OpenRequest RequestFor(size_t i) const;
  void UsePage(const UserPage* page);
  absl::Status NeedEpochPage();
  int FdWithEpochs() const;
  void MapEpochPage();
  void ForgetTimesOfItsOwn();
  void FinishCopies();
  void Summarise();
  void AllowReadInPlace();

  bool IsThisThread() const { return target_.kind == Target::Kind::kThisThread; }
  bool OpensApart() const;
  bool CountsThreads() const { return target_.kind != Target::Kind::kCpu && target_.kind != Target::Kind::kSystem; }
  Source::Slot& slot(size_t i) { return source_->slots_[i]; }
  const EventConfig& event(size_t i) const { return source_->slots_[i].event; }
  open::OpenRequest ClockRequest(size_t i) const;
  // Keeps `event`; the first one of the kernel's PMU of software events leads the group of the others.
  const open::LiveRing& AddInline(open::LiveRing event, bool is_software = true) {
    if (is_software && leader_fd_ < 0) leader_fd_ = event.fd();
    source_->inline_events_.push_back(std::move(event));
    return source_->inline_events_.back();
  }
  std::string Asked(size_t i) const {
    return absl::StrFormat("event '%s' on %s", event(i).name, open::Describe(target_));
  }

  Groups groups_;
  Target target_;
  CounterOptions options_;
  uint32_t banned_;
  sys::LazyRights rights_;
  std::unique_ptr<Source> source_;
  std::vector<size_t> written_in_;  // By event: the group in which it is written.
  bool detailed_switches_ = false;  // Migrations are counted from switch records.
  bool can_multiplex_ = false;  // Some event can. Then one group may hold all, and its times are those of all members.
  static constexpr size_t kNoSlot = ~size_t{0};
  size_t clock_slot_ = kNoSlot;         // A task-clock that can be the time of a group.
  bool clock_has_switch_ring_ = false;  // The event of the switch ring is that task-clock.
  // Of the inline events of the kernel's PMU of software events, which are one group: it is switched faster. -1: none.
  int leader_fd_ = -1;
  GroupFormat format_;
  std::vector<size_t> open_groups_;  // Indices of Source::groups_ that accept further events: one for each set of CPUs.
};

}  // namespace perfkit::count
