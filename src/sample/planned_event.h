// An event of a sampler, and its rate: which rates the kernel accepts for it, what it makes of them, and what a sample
// represents.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "perfkit/event.h"
#include "perfkit/sampler_options.h"

namespace perfkit::sample {

// An event with everything that is needed to open it.
struct PlannedEvent {
  EventConfig config;
  std::vector<EventConfig> followers;
  SampleRate rate;
  std::string filter;  // In the kernel's form; "" means none.
  bool clock = false;  // Counts nanoseconds.
  // A software event other than a clock: its samples may have another event's id (WriterIndex::WriterOf).
  bool shares_samples = false;
  bool stack = true;        // SampledEvent::stack.
  bool full_stack = false;  // Opened in addition to another event, for FullDumps.
};

// Returns true if a PMU counts the event, false if the kernel's code does.
bool IsHardware(const EventConfig& config);
// Returns the rate of an event without a rate: SampledEvent::rate.
SampleRate DefaultRate(const EventConfig& config, bool clock);
// Returns a rate that gives fewer samples by the factor `times`.
SampleRate Rarer(const SampleRate& rate, uint32_t times);

// In the following `slower` is that of the SamplingLevel: periods are multiplied, frequencies divided by it. If the
// samples of the sampler have their period, `with_period` is true.

// Returns true if what a sample of the event represents is known only by its own period.
bool NeedsPeriod(const PlannedEvent& event);
// Returns true if the kernel's code counts the event: it is neither a clock nor a PMU's.
bool IsRaisedInCode(const PlannedEvent& event);
// Returns true if the kernel samples each occurrence of the event, whatever its period: the event is raised by the
// kernel's own code, and its samples have their period (perf_swevent_event).
bool SamplesEach(const PlannedEvent& event, bool with_period);
// Errors: InvalidArgument if the kernel would refuse the rate, or accept it and sample differently.
absl::Status CheckRate(const EventConfig& config, const SampleRate& rate);
absl::Status CheckPeriod(const PlannedEvent& event, const SampleRate& rate, bool with_period);
// As above, for an event that is open: the new rate must be of the same kind.
absl::Status CheckNewRate(const PlannedEvent& event, const SampleRate& rate, bool with_period);

// Returns the current rate: a period, or a frequency in Hz.
uint64_t RateNow(const PlannedEvent& event, uint32_t slower);
// As above, as the kernel accepts it for an open event: for a clock always a period.
uint64_t KernelRate(const PlannedEvent& event, uint32_t slower);
// Returns the nanoseconds that one sample of a clock represents; 0 for other events.
uint64_t ClockPeriodNs(const PlannedEvent& event, uint32_t slower);
// Returns what one sample represents: its period, for clocks in nanoseconds; 0 if each sample has its own period.
uint64_t Represents(const PlannedEvent& event, uint32_t slower, bool with_period);

}  // namespace perfkit::sample
