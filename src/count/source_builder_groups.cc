// The paths through perf groups: read whole by the kernel, or each from its register with its group as the fallback.
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/count/paths.h"
#include "src/count/source_builder.h"
#include "src/event/pmu.h"

namespace perfkit::count {
namespace {

// Whether reading the register pays: in a virtual machine it may trap, and then costs more than a system call.
bool IsCheaperThanRead(const UserPage& page, int fd) {
  constexpr int kRounds = 32;
  uint64_t by_register = ~uint64_t{0}, by_kernel = ~uint64_t{0};
  for (int i = 0; i < kRounds; ++i) {
    UserCount count;
    const uint64_t start = ReadTicks();
    const bool readable = ReadUserCount(page, count);
    const uint64_t middle = ReadTicks();
    uint64_t words[3 + kMaxEvents];  // as many as a group of any size returns
    const bool read = sys::kernel().read(fd, words, sizeof(words)) > 0;
    if (readable) by_register = std::min(by_register, middle - start);
    if (read) by_kernel = std::min(by_kernel, ReadTicks() - middle);
  }
  return by_register < by_kernel;
}

// Intel's top-down metrics are in a register of eight fractions of 8 bits, which is no count: its number has this bit
// (INTEL_PMC_FIXED_RDPMC_METRICS in arch/x86/include/asm/perf_event.h), whenever the event is on a counter.
bool HoldsFractions(const UserPage& page) {
  constexpr uint32_t kMetricsRegister = 1u << 29;
  const uint32_t index = LoadShared(page.index);
  return index != 0 && ((index - 1) & kMetricsRegister) != 0;
}

// Whether the register of `page` says of event `i` what a read of its group says before and after. What cannot be
// read by its register now is left to the group's reading.
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

// What arm64 wants in config1 before it lends user space a register: bit 1, `rdpmc` (drivers/perf/arm_pmuv3.c, Linux
// 5.17; earlier kernels ignore it). Other PMUs may use the bit otherwise: theirs have no format of that name. The bit
// beside it, `long`, is left alone: the kernel adds up the laps of 32-bit counters, while a long event of cycles can
// live in the one cycle counter only, and would multiplex where two sets want it.
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

// Clocks run on whatever is excluded, and what the kernel raises is never the user's.
bool CanBeUserOnly(const EventConfig& event) {
  return !event.kernel_side && !IsSoftware(event, sys::kSwTaskClock) && !IsSoftware(event, sys::kSwCpuClock);
}

// Whether there is a part for each of `cpus`.
bool CountsOnAll(const EventConfig& event, const std::vector<int>& cpus) {
  return std::ranges::all_of(cpus, [&](int cpu) {
    return std::ranges::any_of(event.parts, [&](const EventConfig::Part& part) {
      return part.only_cpus.empty() || std::ranges::find(part.only_cpus, cpu) != part.only_cpus.end();
    });
  });
}

}  // namespace

// What needs a right elsewhere needs none here: PathsFor.
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

// The one that event `i` joined last: not always the last one, which may be a hybrid event's second part.
PerfGroup& SourceBuilder::GroupOf(size_t i) {
  const auto has = [i](const PerfGroup& group) { return !group.members().empty() && group.members().back() == i; };
  return *std::ranges::find_if(source_->groups_, has);
}

// The parts of event `i` that its target can have: a kind of core may have no CPU there, or none that is online. All
// of them where none has, so that opening says why.
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

// One for each part of event `i`, in the group for its CPUs; none where any has no such group. What counts anywhere can
// be in a user's group once for each kind of core: only one of them runs at a time. Groups that perfkit made up it
// stays out of, because it would stand still on the other cores.
std::vector<SourceBuilder::Seat> SourceBuilder::SeatsFor(size_t i, bool strict_group) const {
  std::vector<Seat> seats;
  const std::vector<size_t> parts = PartsHere(i);
  for (const size_t group : open_groups_) {
    for (const size_t part : parts) {
      if (source_->groups_[group].only_cpus() == event(i).parts[part].only_cpus) seats.push_back({part, group});
    }
  }
  if (seats.size() == parts.size()) return seats;
  seats.clear();
  const bool anywhere = parts.size() == 1 && event(i).parts[parts[0]].only_cpus.empty();
  if (!strict_group || !anywhere) return seats;
  for (const size_t group : open_groups_) seats.push_back({parts[0], group});
  return seats;
}

// Into the open groups: with all its parts, or not at all.
absl::Status SourceBuilder::Join(size_t i, bool strict_group, uint64_t optional_config1) {
  const std::vector<Seat> seats = SeatsFor(i, strict_group);
  if (seats.empty()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: it does not count on the same CPUs as the group that it is written in. Remedy: events of "
                        "one kind of core only, or generic ones, before events that the kernel itself counts.",
                        Asked(i)));
  }
  for (size_t k = 0; k < seats.size(); ++k) {
    const Member member{&event(i), seats[k].part, static_cast<uint8_t>(i), optional_config1, k > 0};
    const absl::Status status = AddPart(member, source_->groups_[seats[k].group]);
    if (status.ok()) continue;
    while (k-- > 0) source_->groups_[seats[k].group].RemoveLast();
    return status;
  }
  return absl::OkStatus();
}

// One for each part, which from now on take further events for their CPUs.
absl::Status SourceBuilder::OpenNewGroups(size_t i, uint64_t optional_config1) {
  std::vector<PerfGroup> opened;
  for (const size_t part : PartsHere(i)) {
    opened.emplace_back(format_);
    const Member member{&event(i), part, static_cast<uint8_t>(i), optional_config1, opened.size() > 1};
    if (absl::Status status = AddPart(member, opened.back()); !status.ok()) return status;
  }
  for (PerfGroup& group : opened) {
    std::erase_if(open_groups_, [&](size_t open) { return source_->groups_[open].only_cpus() == group.only_cpus(); });
    open_groups_.push_back(source_->groups_.size());
    source_->groups_.push_back(std::move(group));
  }
  return absl::OkStatus();
}

// Into the open groups if it fits there; else, unless the user wrote the group, into new ones.
absl::Status SourceBuilder::OpenInGroup(size_t i, bool strict_group, uint64_t optional_config1) {
  if (i == clock_slot_ && AdoptClock(i)) return absl::OkStatus();
  absl::Status status = open_groups_.empty() ? absl::UnavailableError("") : Join(i, strict_group, optional_config1);
  if (!status.ok() && strict_group && !open_groups_.empty()) return status;
  if (!status.ok()) status = OpenNewGroups(i, optional_config1);
  if (!status.ok()) return status;
  source_->grouped_ |= 1u << i;
  if (can_multiplex_) source_->multiplexable_ |= 1u << i;
  TellWhatIsLeftOut(i);
  return absl::OkStatus();
}

// What no number of this event will have in it: the kernel's part, or what a thread does on other kinds of core.
void SourceBuilder::TellWhatIsLeftOut(size_t i) {
  const PerfGroup& group = GroupOf(i);
  const bool user_only = group.user_only(group.members().size() - 1) || event(i).exclude_kernel || options_.user_only;
  if (user_only && CanBeUserOnly(event(i))) slot(i).fixed_flags.flags |= Validity::kUserOnly;
  if (!CountsThreads() || event(i).cpu_wide_only) return;
  const auto has = [i](const PerfGroup& group) { return std::ranges::count(group.members(), i) != 0; };
  if (std::ranges::count_if(source_->groups_, has) > 1) source_->split_ |= 1u << i;
  const absl::StatusOr<std::vector<int>> present = open::PresentCpus();
  if (present.ok() && !CountsOnAll(event(i), *present)) slot(i).fixed_flags.flags |= Validity::kSomeCpus;
}

bool SourceBuilder::AdoptClock(size_t i) {
  for (PerfGroup& group : source_->groups_) {
    if (!group.AdoptClock(static_cast<uint8_t>(i))) continue;
    source_->grouped_ |= 1u << i;
    return true;
  }
  return false;
}

// In a group like any other, with its page mapped besides: the register when it can be read, the group when not.
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
    // It is open and counts: by the group, if that will do.
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

// One group of this thread, of events that cannot multiplex, whose numbers the kernel writes in the order of the set.
void SourceBuilder::AllowReadInPlace() {
  if (!IsThisThread() || source_->plan_.page == nullptr || source_->groups_.size() != 1 || can_multiplex_) return;
  const PerfGroup& group = source_->groups_.front();
  std::vector<uint8_t> order = group.members();
  // The time enabled is there also where no event of the set has adopted it: kMaxEvents then, which is in no order.
  if (group.format().time_words() == 1) order.insert(group.format().alone ? order.end() : order.begin(), group.clock());
  const size_t size = source_->slots_.size();
  std::vector<uint8_t> whole_set(size);
  std::iota(whole_set.begin(), whole_set.end(), uint8_t{0});
  if (group.task_cpus() != 1 || order != whole_set) return;
  const bool headed = !group.format().alone;
  const auto bytes = static_cast<ssize_t>((size + (headed ? 1 : 0)) * sizeof(uint64_t));
  source_->in_place_ = {group.fd(0), headed ? group.members().size() : 0, bytes};
}

}  // namespace perfkit::count
