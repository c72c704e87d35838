// Opens the sampler of a session: with the best stacks that can be had, and a sentence for each that can't.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/profile.h"
#include "perfkit/sampler.h"
#include "perfkit/session.h"
#include "src/session/aggregator.h"
#include "src/session/waking.h"

namespace perfkit::session {

struct OpenedSampler {
  Sampler sampler;
  CallStack::Kind stacks = CallStack::Kind::kNone;
  // Of SamplerOptions::events, in their order; then the followers of the first one, of the second one, ...
  std::vector<ProfileEvent> events;
  std::vector<AggregatedEvent> sampled;   // the sampler's events
  std::optional<WakingFormat> wakings{};  // of the last one, if that is kWakingEvent
  std::vector<std::string> notes;
};

// What an event is, as a profile has it.
ProfileEvent EventOf(const EventSpec& event, bool user_only);

// InvalidArgument for an interval out of range; Unimplemented if stacks were asked for by name that need perfkit::dwarf
// and it is not linked; else as Sampler::Open.
absl::StatusOr<OpenedSampler> OpenSampler(const SessionOptions& options);

}  // namespace perfkit::session
