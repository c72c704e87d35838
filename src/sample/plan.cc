// Converts options to attrs. Make resolves the events, validates the options, probes what this kernel supports, and
// chooses one layout for all events. The requests are then computed from the plan whenever an event is opened, at the
// level of that moment. Source of every field: include/uapi/linux/perf_event.h.
#include "src/sample/plan.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/event/event_table.h"
#include "src/open/task_cpu.h"
#include "src/sample/filter.h"
#include "src/sys/kernel.h"

namespace perfkit::sample {
namespace {

// Fields that have options of their own.
constexpr uint64_t kByOption = kSampleCallchain | kSampleStackUser | kSampleBranchStack | kSampleRead;
// Exceeds any machine's memory, and is far below an overflow of sizes.
constexpr size_t kLargestRing = size_t{1} << 40;
// The fields that the trailer of other records can have.
constexpr uint64_t kTrailer = kSampleIdentifier | kSampleTid | kSampleTime | kSampleId | kSampleStreamId | kSampleCpu;

absl::Status Wrong(std::string text) { return absl::Status(absl::StatusCode::kInvalidArgument, std::move(text)); }

// Fields that only hardware events have. For others they would be 0, which is not a value.
constexpr uint64_t kOfHardware = kSampleWeight | kSampleWeightStruct | kSampleDataSrc | kSampleTransaction;

bool IsClock(const EventConfig& config) {
  const EventConfig::Part& part = config.parts.front();
  return part.type == sys::kTypeSoftware && (part.config == sys::kSwCpuClock || part.config == sys::kSwTaskClock);
}

uint64_t ReadFormat(bool group, bool lost) {
  uint64_t format = kReadId;
  if (group) format |= kReadGroup;
  if (lost) format |= kReadLost;
  return format;
}

// Probes whether the kernel supports PERF_FORMAT_LOST (Linux 6.0).
bool KernelCountsLost(const sys::Rights& rights) {
  open::OpenRequest request = open::RequestForNothing("an event that counts what it loses");
  request.attr.read_format = kReadLost;
  return open::OpenEvent(request, rights).ok();
}

// Probes whether the kernel supports counts in samples of inherited events (Linux 6.12).
bool KernelReadsInherited(const sys::Rights& rights) {
  open::OpenRequest request = open::RequestForNothing("an inherited event whose samples have counts");
  request.attr.sample_type = kSampleRead | kSampleTid;
  request.attr.read_format = kReadId;
  request.attr.inherit = request.attr.disabled = 1;
  return open::OpenEvent(request, rights).ok();
}

// Refuses events, and followers, that perf does not have.
absl::Status CheckSampled(const PlannedEvent& event) {
  std::vector<const EventConfig*> all = {&event.config};
  for (const EventConfig& follower : event.followers) all.push_back(&follower);
  for (const EventConfig* const config : all) {
    if (!event::IsWithoutPerf(*config)) continue;
    return Wrong(
        absl::StrFormat("event '%s': it is counted without perf, and gives no samples. Remedy: count it by a "
                        "CounterSet or a FrameCounter.",
                        config->name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Plan> Plan::Make(const SamplerOptions& options, const Target& target) {
  Plan plan;
  plan.options_ = options;
  plan.target_ = target;
  // The thread's number, so that another thread can attach it again.
  if (target.kind == Target::Kind::kThisThread) plan.target_.id = sys::kernel().gettid();
  plan.rights_ = sys::ReadRights();
  for (const SampledEvent& event : options.events) {
    if (absl::Status status = plan.AddEvent(event); !status.ok()) return status;
  }
  if (absl::Status status = plan.CheckOptions(); !status.ok()) return status;
  if (absl::Status status = plan.ChooseSignals(); !status.ok()) return status;
  if (absl::Status status = plan.AddFullDumps(); !status.ok()) return status;
  plan.counts_lost_ = KernelCountsLost(plan.rights_);
  plan.ChooseLayout();
  if (absl::Status periods = plan.CheckPeriods(); !periods.ok()) return periods;
  return plan;
}

absl::Status Plan::AddEvent(const SampledEvent& event) {
  PlannedEvent planned;
  absl::StatusOr<EventConfig> config = ResolveEvent(event.event);
  if (!config.ok()) return config.status();
  planned.config = *std::move(config);
  for (const EventSpec& spec : event.followers) {
    absl::StatusOr<EventConfig> follower = ResolveEvent(spec);
    if (!follower.ok()) return follower.status();
    planned.followers.push_back(*std::move(follower));
  }
  if (absl::Status sampled = CheckSampled(planned); !sampled.ok()) return sampled;
  planned.clock = IsClock(planned.config);
  planned.rate = event.rate ? *event.rate : DefaultRate(planned.config, planned.clock);
  planned.stack = event.stack;
  planned.shares_samples = planned.config.parts.front().type == sys::kTypeSoftware && !planned.clock;
  if (absl::Status twice = RefuseTwice(planned); !twice.ok()) return twice;
  if (planned.config.precise != 0 && !IsHardware(planned.config)) {
    return Wrong(
        absl::StrFormat("event '%s': only hardware events have a precision. Remedy: leave out the modifier; samples of "
                        "faults are always exact.",
                        planned.config.name));
  }
  if (absl::Status rate = CheckRate(planned.config, planned.rate); !rate.ok()) return rate;
  if (planned.config.kernel_side && (planned.config.exclude_kernel || options_.user_only)) {
    return Wrong(
        absl::StrFormat("event '%s': the kernel raises it in its own code, so with user space only it would never give "
                        "a sample. Remedy: leave out the modifier, or user_only.",
                        planned.config.name));
  }
  absl::StatusOr<std::string> filter = CheckFilter(planned.config, event.filter, {});
  if (!filter.ok()) return filter.status();
  planned.filter = *std::move(filter);
  events_.push_back(std::move(planned));
  return absl::OkStatus();
}

// Their samples would have each other's ids (DuplicateFilter::CountsOnce).
absl::Status Plan::RefuseTwice(const PlannedEvent& event) const {
  const uint64_t config = event.config.parts.front().config;
  const bool twice = std::any_of(events_.begin(), events_.end(), [&](const PlannedEvent& other) {
    return other.shares_samples && event.shares_samples && other.config.parts.front().config == config;
  });
  if (!twice) return absl::OkStatus();
  return Wrong(
      absl::StrFormat("event '%s' is given twice: the kernel does not distinguish the samples of two software events "
                      "of one kind. Remedy: give it once, at the shorter period.",
                      event.config.name));
}

// Rejects fields that none of these events can fill.
absl::Status Plan::CheckHardware() const {
  const bool any =
      std::any_of(events_.begin(), events_.end(), [](const PlannedEvent& event) { return IsHardware(event.config); });
  if (any) return absl::OkStatus();
  if (options_.branches) {
    return Wrong(
        "branch stacks come from hardware events, and none of the events is one. Remedy: \"cycles\", if the machine "
        "has a PMU; or call stacks (SamplerOptions::stack)");
  }
  if ((options_.fields & kOfHardware) != 0) {
    return Wrong(
        "weight, data source and transaction come from hardware events that follow memory accesses, and none of the "
        "events is one: they would all be 0. Remedy: such an event (\"mem-loads\"), or the address of page faults "
        "(kSampleAddr)");
  }
  return absl::OkStatus();
}

absl::Status Plan::CheckOptions() const {
  if (absl::Status hardware = CheckHardware(); !hardware.ok()) return hardware;
  if (events_.empty() && !options_.side_band && !options_.switches) {
    return Wrong("a sampler needs at least one event, or side_band, or switches");
  }
  if ((options_.fields & kByOption) != 0) {
    return Wrong(
        "SamplerOptions::fields: stacks, branches and values of groups have options of their own "
        "(stack, branches, followers)");
  }
  if ((options_.fields & kSampleAux) != 0) {
    return Wrong("SamplerOptions::fields: AUX data comes from a trace unit's own ring, which perfkit does not read");
  }
  if (options_.ring_bytes > kLargestRing) {
    return Wrong(
        absl::StrFormat("SamplerOptions::ring_bytes: %d. Remedy: at most %d.", options_.ring_bytes, kLargestRing));
  }
  if (!std::isfinite(options_.cpu_budget) || options_.cpu_budget < 0) {
    return Wrong(
        absl::StrFormat("SamplerOptions::cpu_budget is %g. Remedy: a share of one CPU, such as 0.02, or 0 for none.",
                        options_.cpu_budget));
  }
  if (options_.cpu_budget > 0 && options_.mode != RingMode::kStream) {
    return Wrong(
        "SamplerOptions::cpu_budget: requires RingMode::kStream, because rings that overwrite are drained too rarely "
        "to keep a budget");
  }
  return CheckStack();
}

absl::Status Plan::CheckPeriods() const {
  for (const PlannedEvent& event : events_) {
    if (absl::Status status = CheckPeriod(event, event.rate, with_period()); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void Plan::SetRate(size_t event, SampleRate rate) {
  events_[event].rate = rate;
  if (events_.size() > asked()) events_[event + asked()].rate = Rarer(rate, options_.stack.full.every);
}

void Plan::ChooseLayout() {
  uint64_t type = options_.fields | kSampleIdentifier | kSampleIp | kSampleTid | kSampleTime;
  if (options_.switches) type |= kSampleCpu;
  for (const PlannedEvent& event : events_) {
    if (NeedsPeriod(event)) type |= kSamplePeriod;
    if (event.config.parts.front().type == sys::kTypeTracepoint) type |= kSampleRaw;
    any_followers_ = any_followers_ || !event.followers.empty();
  }
  if (any_followers_ || ReadsOwnIds()) type |= kSampleRead;
  if (options_.branches) type |= kSampleBranchStack;
  type |= RegisterFields() | StackFields();
  bits_.sample_type = type;
  // A group's count of losses is that of the child that was added last (__perf_read_group_add in kernel/events/core.c).
  if (any_followers_ && inherits()) counts_lost_ = false;
  bits_.read_format = ReadFormat(any_followers_, counts_lost_);
  bits_.branch_sample_type = options_.branches ? options_.branches->bits : 0;
  bits_.sample_id_all = true;
  layout_ = SampleLayout(bits_);
}

// A software event's sample may have the id of another sampler's event (WriterIndex::WriterOf). If several events could
// have written it, its counts identify the event: they and their ids are read from the event itself (perf_output_read).
bool Plan::ReadsOwnIds() const {
  const auto sharing = std::ranges::count_if(events_, [](const PlannedEvent& event) { return event.shares_samples; });
  return sharing > 1 && (!inherits() || KernelReadsInherited(rights_));
}

bool Plan::many_threads() const {
  switch (target_.kind) {
    case Target::Kind::kAllThreads:
    case Target::Kind::kProcess: return true;
    case Target::Kind::kThread: return target_.inherit;
    default: return false;
  }
}

std::vector<size_t> Plan::PartsOn(size_t event, int cpu) const {
  std::vector<size_t> parts;
  const std::vector<EventConfig::Part>& all = events_[event].config.parts;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::vector<int>& cpus = all[i].only_cpus;
    if (cpu < 0 || cpus.empty() || std::count(cpus.begin(), cpus.end(), cpu) != 0) parts.push_back(i);
  }
  return parts;
}

void Plan::FillShared(sys::PerfEventAttr& attr) const {
  attr.sample_type = bits_.sample_type;
  attr.read_format = bits_.read_format;
  attr.sample_regs_user = bits_.regs_user;
  attr.sample_regs_intr = bits_.regs_intr;
  attr.sample_id_all = 1;
  attr.branch_sample_type = bits_.branch_sample_type;
  attr.disabled = 1;
  attr.use_clockid = 1;
  attr.clockid = options_.clock_id;
  attr.write_backward = options_.mode == RingMode::kOverwrite;
  attr.watermark = 1;
  attr.wakeup_events_or_watermark = ~0u;  // That of the ring's owner counts.
}

void Plan::FillInheritance(sys::PerfEventAttr& attr) const {
  attr.inherit = inherits();
  attr.inherit_thread = attr.inherit && (live() || target_.kind == Target::Kind::kAllThreads);
}

open::OpenRequest Plan::Request(const EventConfig& config, size_t part) const {
  open::OpenRequest request = open::RequestFor(config, part);
  if (options_.user_only && request.may_restrict_to_user) request.attr.exclude_kernel = request.attr.exclude_hv = 1;
  request.asked = absl::StrFormat("samples of event '%s' on %s", config.name, open::Describe(target_));
  return request;
}

open::OpenRequest Plan::EventRequest(size_t event, size_t part, const SamplingLevel& level) const {
  const PlannedEvent& planned = events_[event];
  open::OpenRequest request = Request(planned.config, part);
  sys::PerfEventAttr& attr = request.attr;
  FillShared(attr);
  FillInheritance(attr);
  attr.freq = std::holds_alternative<Frequency>(planned.rate);
  attr.sample_period_or_freq = RateNow(event, level);
  attr.enable_on_exec = target_.enable_on_exec;
  ApplyStack(attr, planned, level);
  return request;
}

// A group counts on one kind of core. If a follower has a part for each kind, the leader's kind is used.
open::OpenRequest Plan::FollowerRequest(size_t event, size_t part, size_t follower) const {
  const EventConfig& config = events_[event].followers[follower];
  const std::vector<int>& cpus = events_[event].config.parts[part].only_cpus;
  const auto same = std::ranges::find(config.parts, cpus, &EventConfig::Part::only_cpus);
  open::OpenRequest request = Request(config, same == config.parts.end() ? 0 : same - config.parts.begin());
  FillInheritance(request.attr);
  request.attr.read_format = bits_.read_format;
  request.attr.sample_type = bits_.sample_type & (kSampleIdentifier | kSampleTid | kSampleRead);
  request.attr.use_clockid = 1;
  request.attr.clockid = options_.clock_id;  // All events of a group need one clock.
  return request;
}

// Describes, for messages, a part of the sampler that the user has not asked for by name: by the events that need it.
std::string Plan::DescribePart(std::string_view part) const {
  std::string names;
  for (const PlannedEvent& event : std::span(events_).first(asked())) {
    absl::StrAppendFormat(&names, "%s'%s'", names.empty() ? "" : ", ", event.config.name);
  }
  if (names.empty()) return absl::StrFormat("%s of %s", part, open::Describe(target_));
  return absl::StrFormat("samples of event%s %s on %s (%s)", asked() == 1 ? "" : "s", names, open::Describe(target_),
                         part);
}

open::OpenRequest Plan::RingOwnerRequest() const {
  open::OpenRequest request;
  request.attr.type = sys::kTypeSoftware;
  request.attr.config = sys::kSwDummy;
  // Any user may open this; the records do not depend on it.
  request.attr.exclude_kernel = request.attr.exclude_hv = 1;
  FillShared(request.attr);
  // A dummy never samples. Its sample_type decides the trailer of its records.
  request.attr.sample_type &= kTrailer;
  request.attr.branch_sample_type = request.attr.sample_regs_user = 0;
  request.attr.read_format = ReadFormat(false, counts_lost_);
  request.may_restrict_to_user = false;
  request.asked = DescribePart("a ring");
  return request;
}

open::OpenRequest Plan::TrackingRequest() const {
  open::OpenRequest request = RingOwnerRequest();
  FillInheritance(request.attr);
  request.attr.task = 1;  // FORK and EXIT records, which the sampler itself needs.
  request.attr.comm = request.attr.comm_exec = request.attr.mmap = request.attr.mmap2 = options_.side_band;
  request.attr.build_id = options_.side_band;
  request.attr.cgroup = options_.side_band && (bits_.sample_type & kSampleCgroup) != 0;
  request.attr.enable_on_exec = target_.enable_on_exec;
  request.attr.write_backward = 0;
  request.asked = DescribePart("the side band");
  return request;
}

open::OpenRequest Plan::SwitchesRequest() const {
  open::OpenRequest request = RingOwnerRequest();
  FillInheritance(request.attr);
  request.attr.context_switch = 1;
  request.attr.task = !needs_tracking();  // EXIT records end a thread's time.
  request.attr.enable_on_exec = target_.enable_on_exec;
  request.asked = absl::StrFormat("the switch records of %s", open::Describe(target_));
  return request;
}

// Room for about 900 threads that start or end, or 400 files that are mapped, between two drains.
size_t Plan::SideBandBytes(size_t ring_bytes) const {
  constexpr size_t kBytes = 64 << 10;
  return needs_tracking() ? std::min(kBytes, ring_bytes) : 0;
}

// A sample: its words, chain (calls and 4 markers), branches (32 of 3 words), values of the group, raw data; or a
// MMAP2 record with the longest path.
size_t Plan::LargestRecord() const {
  constexpr size_t kOther = 8 << 10;
  const bool by_pointers = options_.stack.kind == CallStack::Kind::kFramePointers;
  const size_t least = layout_.has(Field::kCallchain) ? 1024 : 0;
  const size_t depth = by_pointers ? std::max<size_t>(options_.stack.depth, least) : least;
  const uint32_t full = options_.stack.full.every > 0 ? options_.stack.full.bytes : 0;
  return kOther + 8 * depth + std::max(options_.stack.stack_bytes, full);
}

}  // namespace perfkit::sample
