// Opens the sampler of a session: with the best stacks that are possible, and a note for each kind that is not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/profile.h"
#include "perfkit/sampler.h"
#include "perfkit/session.h"
#include "src/session/aggregator.h"
#include "src/session/sched_events.h"

namespace perfkit::session {

struct OpenedSampler {
  Sampler sampler;
  CallStack::Kind stacks = CallStack::Kind::kNone;
  // The profile's events: SamplerOptions::events in their order, then the followers of the first one, of the second
  // one, ...
  std::vector<ProfileEvent> events;
  std::vector<AggregatedEvent> sampled;   // the sampler's events
  std::optional<WakingFormat> wakings{};  // of the last one, if that is kWakingEvent
  std::vector<std::string> notes;
};

// Returns the description of an event in a profile.
ProfileEvent EventOf(const EventSpec& event, bool user_only);

// Errors: InvalidArgument for options that cannot work on any machine (CheckOptions); Unimplemented if
// perfkit::dwarf is not linked and stacks that need it were asked for by name; otherwise as Sampler::Open.
absl::StatusOr<OpenedSampler> OpenSampler(const SessionOptions& options);

}  // namespace perfkit::session
