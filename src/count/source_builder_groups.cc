// The paths through perf groups: read as a whole by the kernel, or each event from its register with its group as the
// fallback. An event on a hybrid CPU has one part for each kind of core, each in a group for that core's CPUs; a thread
// is on one of them at a time. A register is used only after a test: it must be readable now, agree with reads of its
// group before and after, and be faster than a read.
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/count/paths.h"
#include "src/count/source_builder.h"
#include "src/event/pmu.h"

namespace perfkit::count {
namespace {

// Returns true if reading the register is faster: in a virtual machine it may trap, and then takes longer than a system
// call.
bool IsCheaperThanRead(const UserPage& page, int fd) {
  constexpr int kRounds = 32;
  uint64_t by_register = ~uint64_t{0}, by_kernel = ~uint64_t{0};
  for (int i = 0; i < kRounds; ++i) {
    UserCount count;
    const uint64_t start = ReadTicks();
    const bool readable = ReadUserCount(page, count);
    const uint64_t middle = ReadTicks();
    uint64_t words[3 + kMaxEvents];  // As many as a group of any size returns.
    const bool read = sys::kernel().read(fd, words, sizeof(words)) > 0;
    if (readable) by_register = std::min(by_register, middle - start);
    if (read) by_kernel = std::min(by_kernel, ReadTicks() - middle);
  }
  return by_register < by_kernel;
}

// Intel's top-down metrics have a register of eight fractions of 8 bits, which is no count. The number of that register
// has this bit (INTEL_PMC_FIXED_RDPMC_METRICS in arch/x86/include/asm/perf_event.h) whenever the event is on a counter.
bool HoldsFractions(const UserPage& page) {
  constexpr uint32_t kMetricsRegister = 1u << 29;
  const uint32_t index = LoadShared(page.index);
  return index != 0 && ((index - 1) & kMetricsRegister) != 0;
}

// Returns true if the register of `page` agrees about event `i` with reads of its group before and after. An event that
// its register cannot show now is left to the group.
bool AgreesWithRead(const UserPage& page, PerfGroup& group, size_t i) {
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    Snapshot before{}, after{};
    UserCount count;
    group.Read(1u << i, before);
    if (!ReadUserCount(page, count)) return false;
    group.Read(1u << i, after);
    if (((before.missing | after.missing) >> i & 1) != 0) return false;
    if (count.value - before.values[i] > after.values[i] - before.values[i]) return false;
  }
  return true;
}

// The bit of config1 that arm64 requires before it lets user space read a register: bit 1, `rdpmc`
// (drivers/perf/arm_pmuv3.c, Linux 5.17; earlier kernels ignore it). Other PMUs may use the bit otherwise; they have no
// format of that name. The bit beside it, `long`, is not set: the kernel extends 32-bit counters itself, while a long
// event of cycles fits only the one cycle counter, and would multiplex if two sets want it.
uint64_t UserReadBit([[maybe_unused]] const EventConfig& event) {
#if defined(__aarch64__)
  constexpr uint64_t kReadable = 1 << 1;
  const EventConfig::Part& part = event.parts.front();
  if (part.type < sys::kTypeBreakpoint) return kReadable;
  const absl::StatusOr<event::Pmu> pmu = event::LoadPmu({}, part.pmu);
  return pmu.ok() && event::LoadFormat(*pmu, "rdpmc").ok() ? kReadable : 0;
#else
  return 0;
#endif
}

// Returns true if there is a part for each of `cpus`.
bool CountsOnAll(const EventConfig& event, const std::vector<int>& cpus) {
  return std::ranges::all_of(cpus, [&](int cpu) {
    return std::ranges::any_of(event.parts, [&](const EventConfig::Part& part) {
      return part.only_cpus.empty() || std::ranges::find(part.only_cpus, cpu) != part.only_cpus.end();
    });
  });
}

}  // namespace

// Adds to `status` that no privilege is needed on this thread, where switch records count the event (PathsFor).
absl::Status SourceBuilder::ExplainKernelSide(size_t i, const absl::Status& status) const {
  const bool has_records = IsSoftware(event(i), sys::kSwContextSwitches) || IsSoftware(event(i), sys::kSwCpuMigrations);
  if (!has_records || !absl::IsPermissionDenied(status)) return status;
  return absl::PermissionDeniedError(absl::StrFormat(
      "%s On this thread, without only_path, perfkit counts it from switch records, which need no right.",
      std::string(status.message())));
}

absl::Status SourceBuilder::AddPart(const Member& member, PerfGroup& group) {
  return ExplainKernelSide(member.index, group.Add(member, target_, options_.user_only, rights_));
}

// Returns the group that event `i` joined last: not always the last group, which may be that of a hybrid event's second
// part.
PerfGroup& SourceBuilder::GroupOf(size_t i) {
  const auto has = [i](const PerfGroup& group) { return !group.members().empty() && group.members().back() == i; };
  return *std::ranges::find_if(source_->groups_.all(), has);
}

// Returns the parts of event `i` that its target can have: a kind of core may have no CPU there, or none that is
// online. Returns all parts if none has a CPU, so that opening them says why.
std::vector<size_t> SourceBuilder::PartsHere(size_t i) const {
  const std::vector<EventConfig::Part>& parts = event(i).parts;
  std::vector<size_t> all, here;
  for (size_t part = 0; part < parts.size(); ++part) {
    all.push_back(part);
    if (parts.size() == 1 || !absl::IsNotFound(open::TaskCpusOf(target_, parts[part].only_cpus).status())) {
      here.push_back(part);
    }
  }
  return here.empty() ? all : here;
}

// Returns each part of event `i` with the open group for its CPUs; an empty list if a part has no such group. An event
// that counts anywhere can be in a user's group once for each kind of core, because only one of them runs at a time. It
// stays out of groups that perfkit made, because it would count nothing on the other cores.
std::vector<SourceBuilder::PartInGroup> SourceBuilder::GroupsFor(size_t i, bool strict_group) const {
  std::vector<PartInGroup> pairs;
  const std::vector<size_t> parts = PartsHere(i);
  for (const size_t group : open_groups_) {
    for (const size_t part : parts) {
      if (source_->groups_.all()[group].only_cpus() == event(i).parts[part].only_cpus) pairs.push_back({part, group});
    }
  }
  if (pairs.size() == parts.size()) return pairs;
  pairs.clear();
  const bool anywhere = parts.size() == 1 && event(i).parts[parts[0]].only_cpus.empty();
  if (!strict_group || !anywhere) return pairs;
  for (const size_t group : open_groups_) pairs.push_back({parts[0], group});
  return pairs;
}

// Adds event `i` to the open groups: all its parts, or none.
absl::Status SourceBuilder::Join(size_t i, bool strict_group, uint64_t optional_config1) {
  const std::vector<PartInGroup> pairs = GroupsFor(i, strict_group);
  if (pairs.empty()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: it does not count on the same CPUs as the group that it is written in. Remedy: events of "
                        "one kind of core only, or generic ones, before events that the kernel itself counts.",
                        Asked(i)));
  }
  for (size_t k = 0; k < pairs.size(); ++k) {
    const Member member{&event(i), pairs[k].part, static_cast<uint8_t>(i), optional_config1, k > 0};
    const absl::Status status = AddPart(member, source_->groups_.all()[pairs[k].group]);
    if (status.ok()) continue;
    while (k-- > 0) source_->groups_.all()[pairs[k].group].RemoveLast();
    return status;
  }
  return absl::OkStatus();
}

// Opens one group for each part; from now on they accept further events for their CPUs.
absl::Status SourceBuilder::OpenNewGroups(size_t i, uint64_t optional_config1) {
  std::vector<PerfGroup> opened;
  for (const size_t part : PartsHere(i)) {
    opened.emplace_back(format_);
    const Member member{&event(i), part, static_cast<uint8_t>(i), optional_config1, opened.size() > 1};
    if (absl::Status status = AddPart(member, opened.back()); !status.ok()) return status;
  }
  for (PerfGroup& group : opened) {
    std::erase_if(open_groups_,
                  [&](size_t open) { return source_->groups_.all()[open].only_cpus() == group.only_cpus(); });
    open_groups_.push_back(source_->groups_.all().size());
    source_->groups_.all().push_back(std::move(group));
  }
  return absl::OkStatus();
}

// Opens the energy of the whole machine for a set of this thread: on one CPU of each package, in groups of its own,
// which no other event joins. Their times show whether the CPUs are still online.
absl::Status SourceBuilder::OpenEnergy(size_t i) {
  std::vector<PerfGroup> opened;
  for (size_t part = 0; part < event(i).parts.size(); ++part) {
    opened.emplace_back(GroupFormat{.alone = true, .times = GroupFormat::Times::kBoth});
    const Member member{&event(i), part, static_cast<uint8_t>(i)};
    if (absl::Status status = opened.back().Add(member, Target::System(), false, rights_); !status.ok()) return status;
  }
  for (PerfGroup& group : opened) source_->groups_.all().push_back(std::move(group));
  source_->groups_.AddEvent(i);
  return absl::OkStatus();
}

// Adds event `i` to the open groups if it fits there; otherwise, unless the user wrote the group, to new ones. Slots
// begin a new one: the top-down metrics after them are accepted in no other.
absl::Status SourceBuilder::OpenInGroup(size_t i, bool strict_group, uint64_t optional_config1) {
  if (IsEnergy(event(i)) && IsThisThread()) return OpenEnergy(i);
  if (i == clock_slot_ && AdoptClock(i)) return absl::OkStatus();
  const bool apart = format_.alone || (OpensApart() && !strict_group && !CanMultiplex(event(i)));
  const bool begins = apart || open_groups_.empty() || (!strict_group && IsSlots(event(i)));
  absl::Status status = begins ? absl::OkStatus() : Join(i, strict_group, optional_config1);
  if (!status.ok() && strict_group) return status;
  const std::vector<size_t> others = open_groups_;
  if (begins || !status.ok()) status = OpenNewGroups(i, optional_config1);
  if (!status.ok()) return status;
  if (apart) open_groups_ = others;
  source_->groups_.AddEvent(i);
  if (can_multiplex_) source_->multiplexable_ |= 1u << i;
  FlagExclusions(i);
  return absl::OkStatus();
}

// Flags what none of this event's numbers include: the kernel's part, or the thread's work on other kinds of core.
void SourceBuilder::FlagExclusions(size_t i) {
  const PerfGroup& group = GroupOf(i);
  const bool restricted = options_.user_only && !event(i).privilege_given;
  const bool user_only = group.user_only(group.members().size() - 1) || event(i).exclude_kernel || restricted;
  if (user_only && CanBeUserOnly(event(i))) slot(i).fixed_flags.flags |= Validity::kUserOnly;
  if (!CountsThreads() || event(i).cpu_wide_only) return;
  const auto has = [i](const PerfGroup& group) { return std::ranges::count(group.members(), i) != 0; };
  if (std::ranges::count_if(source_->groups_.all(), has) > 1) source_->groups_.AddSplit(i);
  const absl::StatusOr<std::vector<int>> present = open::PresentCpus();
  if (present.ok() && !CountsOnAll(event(i), *present)) slot(i).fixed_flags.flags |= Validity::kSomeCpus;
}

bool SourceBuilder::AdoptClock(size_t i) {
  for (PerfGroup& group : source_->groups_.all()) {
    if (!group.AdoptClock(static_cast<uint8_t>(i))) continue;
    source_->groups_.AddEvent(i);
    return true;
  }
  return false;
}

// Adds the event to a group and maps its page as well: the register is used while it can be read, the group otherwise.
absl::Status SourceBuilder::OpenUserPage(size_t i, bool strict_group) {
  if (event(i).parts.size() != 1) return NoSuchPath(i, ReadPath::kUserPage);
  if (absl::Status status = OpenInGroup(i, strict_group, UserReadBit(event(i))); !status.ok()) return status;
  PerfGroup& group = GroupOf(i);
  const int fd = group.fd(group.members().size() - 1);
  std::optional<sys::Mapping> page = sys::Mapping::ReadOnly(fd, sys::PageSize());
  const auto* const user_page = page ? reinterpret_cast<const UserPage*>(page->data()) : nullptr;
  const bool serves = user_page != nullptr && !HoldsFractions(*user_page) && IsCheaperThanRead(*user_page, fd) &&
                      AgreesWithRead(*user_page, group, i);
  if (!serves || !NeedEpochPage().ok()) {
    // The event is open and counts, by the group if that path is permitted.
    if (options_.only_path) return NoSuchPath(i, ReadPath::kUserPage);
    slot(i).path = ReadPath::kGroupRead;
    return absl::OkStatus();
  }
  detail::ReadPlan& plan = source_->plan_;
  plan.user_pages[plan.user_page_count++] = {user_page, static_cast<uint8_t>(i)};
  source_->user_page_mask_ |= 1u << i;
  source_->user_pages_.push_back(*std::move(page));
  return absl::OkStatus();
}

// An event that counts nothing: its time on is what task-clock would count (kernel/events/core.c: both add up the time
// of the thread's context), and the kernel switches it with the group of the others. task-clock is of another PMU,
// whose events join a group that runs, or is enabled by prctl, only at the next switch.
open::OpenRequest SourceBuilder::ClockRequest(size_t i) const {
  open::OpenRequest request = open::RequestForNothing(Asked(i));
  request.attr.read_format = sys::kFormatTotalTimeRunning;
  request.group_fd = leader_fd_;
  return request;
}

// Permits reading in place for one group of this thread, of events that cannot multiplex, if the kernel writes its
// numbers in the order of the set.
void SourceBuilder::AllowReadInPlace() {
  if (!IsThisThread() || source_->plan_.page == nullptr || source_->groups_.all().size() != 1 || can_multiplex_) return;
  const PerfGroup& group = source_->groups_.all().front();
  // The words in the order in which the kernel writes them: {value, times} of a lone event, {number of members, times,
  // values...} of a group (man perf_event_open). The number of members is cut off by `headed` below.
  std::vector<uint8_t> order = group.members();
  // The time enabled is present even if no event of the set has adopted it; then it is kMaxEvents, which is in no
  // order.
  if (group.format().time_words() == 1) order.insert(group.format().alone ? order.end() : order.begin(), group.clock());
  const size_t size = source_->slots_.size();
  std::vector<uint8_t> whole_set(size);
  std::iota(whole_set.begin(), whole_set.end(), uint8_t{0});
  if (group.task_cpus() != 1 || order != whole_set || IsEnergy(event(0))) return;
  const bool headed = !group.format().alone;
  const auto bytes = static_cast<ssize_t>((size + (headed ? 1 : 0)) * sizeof(uint64_t));
  source_->in_place_ = {group.fd(0), headed ? group.members().size() : 0, bytes};
}

}  // namespace perfkit::count
