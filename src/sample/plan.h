// The plan of a sampler: its options, validated against this machine, and the attrs that follow from them.
//
// All events of a sampler share one layout: sample_type, read_format etc. are the union of what its events need. So
// records can be read before it is known which event wrote them, and all events can share one ring.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/sample.h"
#include "perfkit/target.h"
#include "src/open/open_event.h"
#include "src/sample/overhead_controller.h"
#include "src/sample/planned_event.h"
#include "src/sys/perf_abi.h"
#include "src/sys/rights.h"

namespace perfkit::sample {

class SignalSwitches;

// The maximum size of a dump: perf_event_header.size has 16 bits, and the other fields of the record must fit, too.
inline constexpr uint32_t kLargestStack = (1 << 16) - 4096;
// The number that a sample's signal carries: the event's index, and the thread that the event was opened for.
struct SignalNumber {
  static constexpr unsigned kTidBits = 22;  // PID_MAX_LIMIT, include/linux/threads.h
  static constexpr uint32_t kMaxSampledEvents = 1 << (32 - kTidBits);

  static constexpr uint32_t Of(uint32_t event, pid_t owner) {
    return event << kTidBits | (static_cast<uint32_t>(owner) & ((1u << kTidBits) - 1));
  }
  static constexpr uint32_t EventOf(uint32_t number) { return number >> kTidBits; }
  static constexpr pid_t OwnerOf(uint32_t number) { return static_cast<pid_t>(number & ((1u << kTidBits) - 1)); }
};

class Plan {
 public:
  // Resolves the events and validates the options. Errors: those of ParseEvent; InvalidArgument if options contradict
  // each other.
  static absl::StatusOr<Plan> Make(const SamplerOptions& options, const Target& target);

  // Returns the events that were asked for; with FullDumps, then as many for full dumps, in the same order.
  const std::vector<PlannedEvent>& events() const { return events_; }
  // Returns the number of events that were asked for.
  size_t asked() const { return options_.events.size(); }
  const SamplerOptions& options() const { return options_; }
  const Target& target() const { return target_; }
  const sys::Rights& rights() const { return rights_; }
  const SampleLayout& layout() const { return layout_; }
  // Returns true if threads walk their own stacks, in the signals of their samples.
  bool live() const { return options_.stack.kind == CallStack::Kind::kLive; }
  // Sets attr.sig_data of all events, without their numbers (SignalNumber), and what disables them by their numbers.
  void SetSignals(uint64_t sig_data, SignalSwitches& switches) {
    sig_data_ = sig_data;
    switches_ = &switches;
  }
  SignalSwitches* switches() const { return switches_; }
  // Sets the cost of one signal to the sampled thread.
  void SetSignalCost(uint64_t ns) { signal_ns_ = ns; }
  uint64_t SigData(uint32_t event, pid_t owner) const { return sig_data_ | SignalNumber::Of(event, owner); }
  // Returns true if descriptors send the signals (F_SETSIG), because the kernel lacks attr.sigtrap. Then each thread
  // has events of its own.
  bool signals_by_descriptor() const { return by_descriptor_; }
  // Returns true if this kernel counts the losses of each event (PERF_FORMAT_LOST).
  bool counts_lost() const { return counts_lost_; }

  // Returns true if several threads are sampled: then each has its own events.
  bool many_threads() const;
  bool per_cpu_rings() const { return many_threads() && options_.rings != SamplerOptions::Rings::kPerThread; }
  // Returns true if each thread and CPU has a tracking event for the side band, with rings of its own. If several
  // threads are sampled, it is always needed: its FORK records say which thread's events a thread has inherited.
  bool needs_tracking() const { return options_.side_band || many_threads(); }
  // Returns the size of a ring of the side band, in bytes, beside rings of samples with `ring_bytes`; 0 if there is
  // none.
  size_t SideBandBytes(size_t ring_bytes) const;
  // Returns true if there is one ring for each CPU.
  bool rings_by_cpu() const { return per_cpu_rings() || whole_cpus(); }
  // Returns true if whole CPUs are sampled, not threads.
  bool whole_cpus() const { return target_.kind == Target::Kind::kCpu || target_.kind == Target::Kind::kSystem; }

  // Returns the indices of the parts of the event that count on `cpu` (-1 means any). A part without CPUs of its own
  // counts on all.
  std::vector<size_t> PartsOn(size_t event, int cpu) const;

  // The following return requests without pid, cpu and group, which the caller sets. All events start disabled.
  open::OpenRequest EventRequest(size_t event, size_t part, const SamplingLevel& level) const;
  open::OpenRequest FollowerRequest(size_t event, size_t part, size_t follower) const;
  // Returns the request of the tracking event for the side band, except SWITCH records. Its rings always stream.
  open::OpenRequest TrackingRequest() const;
  // Returns the request of the tracking event for SWITCH records. They are as frequent as samples, so they share their
  // rings.
  open::OpenRequest SwitchesRequest() const;
  // Returns the request of a dummy without records, which owns a ring.
  open::OpenRequest RingOwnerRequest() const;

  // The rates of events: planned_event.h.
  uint64_t RateNow(size_t event, const SamplingLevel& level) const {
    return sample::RateNow(events_[event], level.slower);
  }
  uint64_t KernelRate(size_t event, const SamplingLevel& level) const {
    return sample::KernelRate(events_[event], level.slower);
  }
  absl::Status CheckNewRate(size_t event, const SampleRate& rate) const {
    return sample::CheckNewRate(events_[event], rate, with_period());
  }
  void SetRate(size_t event, SampleRate rate);
  // Sets the size of dumps. On an error nothing has changed.
  absl::Status SetStackBytes(uint32_t bytes);
  uint64_t ClockPeriodNs(size_t event, const SamplingLevel& level) const {
    return sample::ClockPeriodNs(events_[event], level.slower);
  }
  uint64_t Represents(size_t event, const SamplingLevel& level) const {
    return sample::Represents(events_[event], level.slower, with_period());
  }
  bool SamplesEach(size_t event) const { return sample::SamplesEach(events_[event], with_period()); }
  bool IsBreakpoint(size_t event) const { return events_[event].config.parts.front().type == sys::kTypeBreakpoint; }
  // Returns the requested level.
  SamplingLevel FullLevel() const;
  // Returns the number of frames that live stacks keep of their outer ends: CallStack::outer.
  uint32_t OuterDepth() const;
  // Returns the size below which a stack is not worth taking: bytes of a dump, or calls of a chain.
  uint32_t MinStack() const;
  // Returns an estimate of the kernel's CPU time for one sample, in nanoseconds.
  uint64_t SampleCostNs(size_t event, const SamplingLevel& level) const;
  // Further nanoseconds of a sample in the kernel, beside a dumped or live stack, for the kernel's part of its chain:
  // six frames, as most samples have, on a virtual machine with Linux 6.18.
  static constexpr uint64_t kKernelChainNs = 1300;
  // Returns true if dumped and live stacks have the kernel's part as a chain.
  bool has_kernel_chain() const {
    return options_.stack.kind != CallStack::Kind::kFramePointers && layout_.has(Field::kCallchain);
  }
  // Returns true if threads inherit the events of the threads that start them.
  bool inherits() const { return per_cpu_rings() && target_.inherit; }
  // Returns the maximum size of a record in bytes. A ring with more free bytes has lost none.
  size_t LargestRecord() const;

 private:
  absl::Status AddEvent(const SampledEvent& event);
  // Returns true if samples have their period.
  bool with_period() const { return layout_.has(Field::kPeriod); }
  absl::Status CheckPeriods() const;
  absl::Status RefuseTwice(const PlannedEvent& event) const;
  absl::Status CheckOptions() const;
  absl::Status CheckHardware() const;
  absl::Status CheckFullDumps() const;
  absl::Status AddFullDumps();
  // Returns the stack of an event's samples: bytes of a dump, or calls of a chain.
  uint32_t StackOf(const PlannedEvent& event, const SamplingLevel& level) const;
  absl::Status CheckStack() const;
  absl::Status CheckLive() const;
  absl::Status ChooseSignals();
  // Returns true if the target is one thread of this process, or all.
  bool IsOwnThread() const;
  // Set the layout's registers. Return the bits of sample_type.
  uint64_t RegisterFields();
  uint64_t StackFields();
  // Returns kSampleCallchain if samples have the kernel's part of the chain beside another kind of stack, or else 0.
  uint64_t KernelChainField() const;
  // Returns true if samples need counts to identify their event.
  bool ReadsOwnIds() const;
  void ChooseLayout();
  // Sets the fields that all attrs of the sampler have in common.
  void FillShared(sys::PerfEventAttr& attr) const;
  void FillInheritance(sys::PerfEventAttr& attr) const;
  void ApplyStack(sys::PerfEventAttr& attr, const PlannedEvent& event, const SamplingLevel& level) const;
  open::OpenRequest Request(const EventConfig& config, size_t part) const;
  std::string DescribePart(std::string_view part) const;

  SamplerOptions options_;
  Target target_;
  sys::Rights rights_;
  std::vector<PlannedEvent> events_;
  AttrBits bits_;
  SampleLayout layout_;
  bool counts_lost_ = true;
  bool any_followers_ = false;
  uint64_t sig_data_ = 0;
  SignalSwitches* switches_ = nullptr;
  uint64_t signal_ns_ = 1500;  // As measured on a virtual machine with Linux 6.18.
  bool by_descriptor_ = false;
};

}  // namespace perfkit::sample
