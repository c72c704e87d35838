// The paths through perf groups: read whole by the kernel, or each from its register with the group behind it.
#include <algorithm>
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

}  // namespace

// PerfError's advice to ask for user space only is no help where user space alone would count 0.
absl::Status SourceBuilder::ExplainKernelSide(size_t i, const absl::Status& status) const {
  if (!event(i).kernel_side || !absl::IsPermissionDenied(status)) return status;
  const std::string message = absl::StrFormat(
      "%s: the kernel raises it in its own code, which this process may not watch (kernel.perf_event_paranoid is %s). "
      "Remedy: lower kernel.perf_event_paranoid to 1 or grant CAP_PERFMON; on this thread, without only_path, perfkit "
      "counts context-switches and cpu-migrations from switch records, which need no right.",
      Asked(i), rights_.paranoid ? absl::StrFormat("%d", *rights_.paranoid) : "unreadable");
  return absl::PermissionDeniedError(message);
}

absl::Status SourceBuilder::AddPart(const Member& member, PerfGroup& group) {
  return ExplainKernelSide(member.index, group.Add(member, target_, options_.user_only, rights_));
}

// The one that event `i` joined last: not always the last one, which may be a hybrid event's second part.
const PerfGroup& SourceBuilder::GroupOf(size_t i) const {
  const auto has = [i](const PerfGroup& group) { return !group.members().empty() && group.members().back() == i; };
  return *std::ranges::find_if(source_->groups_, has);
}

// Into the open group if it fits there; else, unless the user wrote the group, into a new one.
absl::Status SourceBuilder::OpenInGroup(size_t i, bool strict_group, uint64_t wished_config1) {
  if (i == clock_slot_ && AdoptClock(i)) return absl::OkStatus();
  std::vector<PerfGroup>& groups = source_->groups_;
  absl::Status status = absl::UnavailableError("");
  if (open_group_ != 0 && event(i).parts.size() == 1) {
    status = AddPart({&event(i), 0, static_cast<uint8_t>(i), wished_config1}, groups[open_group_ - 1]);
    if (!status.ok() && strict_group) return status;
  }
  if (!status.ok()) {
    std::vector<PerfGroup> parts;
    for (size_t part = 0; part < event(i).parts.size(); ++part) {
      parts.emplace_back(format_);
      const Member member{&event(i), part, static_cast<uint8_t>(i), wished_config1};
      if (status = AddPart(member, parts.back()); !status.ok()) return status;
    }
    for (PerfGroup& group : parts) groups.push_back(std::move(group));
    if (parts.size() == 1) open_group_ = groups.size();
  }
  source_->grouped_ |= 1u << i;
  if (can_multiplex_) source_->timed_ |= 1u << i;
  const PerfGroup& group = GroupOf(i);
  const bool user_only = group.narrowed(group.members().size() - 1) || event(i).exclude_kernel || options_.user_only;
  if (user_only && CanBeUserOnly(event(i))) slot(i).standing.flags |= Validity::kUserOnly;
  return absl::OkStatus();
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
  const PerfGroup& group = GroupOf(i);
  std::optional<sys::Mapping> page = sys::Mapping::ReadOnly(group.fd(group.members().size() - 1), sys::PageSize());
  const auto* const user_page = page ? reinterpret_cast<const UserPage*>(page->data()) : nullptr;
  if (user_page == nullptr || !IsCheaperThanRead(*user_page, group.fd(group.members().size() - 1))) {
    // It is open and counts: by the group, if that will do.
    if (options_.only_path) return NoSuchPath(i, ReadPath::kUserPage);
    slot(i).path = ReadPath::kGroupRead;
    return absl::OkStatus();
  }
  detail::ReadPlan& plan = source_->plan_;
  UsePage(user_page);
  plan.user_pages[plan.user_page_count++] = {user_page, static_cast<uint8_t>(i)};
  source_->user_page_mask_ |= 1u << i;
  source_->user_pages_.push_back(*std::move(page));
  return absl::OkStatus();
}

// One group of this thread, of events that cannot multiplex, whose numbers the kernel writes in the order of the set.
void SourceBuilder::AllowReadInPlace() {
  if (!IsThisThread() || source_->plan_.page == nullptr || source_->groups_.size() != 1) return;
  const PerfGroup& group = source_->groups_.front();
  std::vector<uint8_t> order = group.members();
  if (group.format().time_words() == 1) order.insert(group.format().alone ? order.end() : order.begin(), group.clock());
  const size_t size = source_->slots_.size();
  if (can_multiplex_ || group.places() != 1 || order.size() != size || !std::ranges::is_sorted(order)) return;
  const bool headed = !group.format().alone;
  const auto bytes = static_cast<ssize_t>((size + (headed ? 1 : 0)) * sizeof(uint64_t));
  source_->in_place_ = {group.fd(0), headed ? group.members().size() : 0, bytes};
}

}  // namespace perfkit::count
