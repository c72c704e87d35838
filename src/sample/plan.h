// What is to be sampled, settled: SamplerOptions against this machine, and the attr of every event that follows.
//
// All events of a sampler share one layout: sample_type, read_format and the rest are the union of what its events
// need. So a record can be read without asking first whose it is, and one ring serves all.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/event.h"
#include "perfkit/sampler.h"
#include "src/open/open_event.h"
#include "src/sample/overhead_controller.h"
#include "src/sys/perf_abi.h"
#include "src/sys/rights.h"

namespace perfkit::sample {

// perf_event_header.size has 16 bits, and the record's other fields must fit too.
inline constexpr uint32_t kLargestStack = (1 << 16) - 4096;
// What the event of a sample's signal is called: its place among the sampler's events, and the thread that it was
// opened for.
struct SignalNumber {
  static constexpr unsigned kTidBits = 22;  // PID_MAX_LIMIT, include/linux/threads.h
  static constexpr uint32_t kMaxSampledEvents = 1 << (32 - kTidBits);

  static constexpr uint32_t Of(uint32_t event, pid_t owner) {
    return event << kTidBits | (static_cast<uint32_t>(owner) & ((1u << kTidBits) - 1));
  }
  static constexpr uint32_t EventOf(uint32_t number) { return number >> kTidBits; }
  static constexpr pid_t OwnerOf(uint32_t number) { return static_cast<pid_t>(number & ((1u << kTidBits) - 1)); }
};

struct PlannedEvent {
  EventConfig config;
  std::vector<EventConfig> followers;
  SampleRate rate;
  std::string filter;           // checked: as the kernel wants it
  bool clock = false;           // counts nanoseconds
  bool shares_samples = false;  // a software event that is no clock: its ids may be another's (SamplerImpl::WriterOf)
  bool full_stack = false;      // taken beside another one, for FullDumps
};

// Whether the CPU counts it, rather than the kernel's code.
bool IsHardware(const EventConfig& config);
// The rate of an event that was asked for without one: SampledEvent::rate.
SampleRate DefaultRate(const EventConfig& config, bool clock);
// So many times fewer samples.
SampleRate Rarer(const SampleRate& rate, uint32_t times);

class Plan {
 public:
  // Resolves events and checks what contradicts itself. Errors: those of ParseEvent, and InvalidArgument.
  static absl::StatusOr<Plan> Make(const SamplerOptions& options, const Target& target);

  // Those that were asked for; then, with FullDumps, for each of them the one that is taken beside it.
  const std::vector<PlannedEvent>& events() const { return events_; }
  size_t asked() const { return options_.events.size(); }
  const SamplerOptions& options() const { return options_; }
  const Target& target() const { return target_; }
  const sys::Rights& rights() const { return rights_; }
  const SampleLayout& layout() const { return layout_; }
  // Whether threads walk their own stacks, in the signals of their samples.
  bool live() const { return options_.stack.kind == CallStack::Kind::kLive; }
  // attr.sig_data of all events, but for their numbers (SignalNumber).
  void SetSignals(uint64_t sig_data) { sig_data_ = sig_data; }
  uint64_t SigData(uint32_t event, pid_t owner) const { return sig_data_ | SignalNumber::Of(event, owner); }
  // Whether samples signal by their descriptors, for attr.sigtrap is not there: each thread has its own.
  bool signals_by_descriptor() const { return by_descriptor_; }
  // Whether this kernel counts losses by event.
  bool counts_lost() const { return counts_lost_; }

  // One event a thread (and CPU), rather than one for the thread wherever it runs.
  bool many_threads() const;
  bool per_cpu_rings() const { return many_threads() && options_.rings == SamplerOptions::Rings::kPerCpu; }
  // Whether each thread and CPU has a tracking event: a dummy for the side band, with rings of its own. Many threads
  // always have one: FORK records tell whose events a thread has.
  bool needs_tracking() const { return options_.side_band || many_threads(); }
  // Bytes of a ring of the side band, beside rings for samples of `ring_bytes`; 0 if there is none.
  size_t SideBandBytes(size_t ring_bytes) const;
  bool rings_by_cpu() const { return per_cpu_rings() || whole_cpus(); }
  bool whole_cpus() const { return target_.kind == Target::Kind::kCpu || target_.kind == Target::Kind::kSystem; }

  // Which part of the event counts on `cpu` (-1: any), as an index; parts without CPUs of their own count everywhere.
  std::vector<size_t> PartsOn(size_t event, int cpu) const;

  // Requests without place: the caller fills in pid, cpu and group. All begin disabled.
  open::OpenRequest EventRequest(size_t event, size_t part, const SamplingLevel& level) const;
  open::OpenRequest FollowerRequest(size_t event, size_t part, size_t follower) const;
  // The dummy for the side band, but for SWITCH records. Its rings stream, whatever those of samples do.
  open::OpenRequest TrackingRequest() const;
  // The dummy for SWITCH records. They come as often as samples do, and share their rings.
  open::OpenRequest SwitchesRequest() const;
  // A dummy without records, to map a ring on.
  open::OpenRequest RingOwnerRequest() const;

  // How often event `i` is sampled now: a period, or a frequency in Hz.
  uint64_t RateNow(size_t event, const SamplingLevel& level) const;
  // The same as the kernel takes it: of a clock always a period.
  uint64_t KernelRate(size_t event, const SamplingLevel& level) const;
  // InvalidArgument when the kernel would not take `rate`, or takes it only of an event that is opened anew.
  absl::Status CheckNewRate(size_t event, const SampleRate& rate) const;
  void SetRate(size_t event, SampleRate rate);
  // Of dumps. When it is refused nothing has changed.
  absl::Status SetStackBytes(uint32_t bytes);
  // Of a clock: the nanoseconds that one sample stands for. 0 for others.
  uint64_t ClockPeriodNs(size_t event, const SamplingLevel& level) const;
  // What a sample stands for: its period, of clocks in nanoseconds. 0: it says so itself.
  uint64_t Represents(size_t event, const SamplingLevel& level) const;
  // All that was asked for; and below which length a stack is not worth taking.
  SamplingLevel FullLevel() const;
  uint32_t MinStack() const;
  // About what the kernel takes for a sample.
  uint64_t SampleCostNs(size_t event, const SamplingLevel& level) const;
  // Whether threads are sampled by what they have inherited.
  bool inherits() const { return per_cpu_rings() && target_.inherit; }
  // No record is longer than this: a ring with more room than that has lost none.
  size_t LargestRecord() const;

 private:
  absl::Status AddEvent(const SampledEvent& event);
  absl::Status CheckRate(const EventConfig& config, const SampleRate& rate) const;
  absl::Status CheckPeriod(size_t event, const Period& period) const;
  absl::Status CheckPeriods() const;
  bool SamplesEach(size_t event) const;
  absl::Status RefuseTwice(const PlannedEvent& event) const;
  absl::Status CheckOptions() const;
  absl::Status CheckHardware() const;
  absl::Status CheckFullDumps() const;
  absl::Status AddFullDumps();
  // Of a sample: bytes of a dump, or calls of a chain.
  uint32_t StackOf(const PlannedEvent& event, const SamplingLevel& level) const;
  absl::Status CheckStack() const;
  absl::Status CheckLive() const;
  absl::Status ChooseSignals();
  bool IsOwnThread() const;
  uint64_t RegisterFields();
  uint64_t StackFields();
  bool ReadsOwnIds() const;
  void ChooseLayout();
  void FillShared(sys::PerfEventAttr& attr) const;
  void FillInheritance(sys::PerfEventAttr& attr) const;
  void ApplyStack(sys::PerfEventAttr& attr, const PlannedEvent& event, const SamplingLevel& level) const;
  open::OpenRequest Request(const EventConfig& config, size_t part) const;

  SamplerOptions options_;
  Target target_;
  sys::Rights rights_;
  std::vector<PlannedEvent> events_;
  AttrBits bits_;
  SampleLayout layout_;
  bool counts_lost_ = true;
  bool any_followers_ = false;
  uint64_t sig_data_ = 0;
  bool by_descriptor_ = false;
};

}  // namespace perfkit::sample
