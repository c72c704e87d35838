// Opens a sampler with the best stacks that are possible: tries all kinds, from whole stacks down to none, until the
// kernel permits one. Each refusal becomes a note of the profile, which says why stacks are not better. Options that
// can't work on any machine are refused first, with a remedy.
#include "src/session/open_sampler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "perfkit/event.h"
#include "perfkit/event_type.h"
#include "perfkit/sample.h"
#include "src/session/check_options.h"
#include "src/session/stack_hooks.h"
#include "src/sys/perf_error.h"

namespace perfkit::session {
namespace {

constexpr uint32_t kDumpBytes = 16 << 10;

std::string_view NameOf(SessionStacks stacks) {
  constexpr std::string_view kNames[] = {"best", "live", "dumps", "frame pointers", "none"};
  return kNames[static_cast<size_t>(stacks)];
}

std::vector<SessionStacks> CandidatesFor(SessionStacks asked) {
  if (asked != SessionStacks::kBest) return {asked};
  return {SessionStacks::kLive, SessionStacks::kDumps, SessionStacks::kFramePointers, SessionStacks::kNone};
}

// With a thread of its own, a session builds most unwind tables there, right after the start.
absl::StatusOr<CallStack> StackOf(SessionStacks stacks, bool own_thread) {
  const StackHooks* const hooks = &StackHookTable;
  switch (stacks) {
    case SessionStacks::kFramePointers: return CallStack::FramePointers();
    case SessionStacks::kNone: return CallStack::None();
    case SessionStacks::kBest:
    case SessionStacks::kLive:
    case SessionStacks::kDumps: break;
  }
  if (hooks == nullptr) {
    return absl::Status(absl::StatusCode::kUnimplemented, kNoStackHooks);
  }
  if (stacks == SessionStacks::kDumps) return CallStack::UserDump(kDumpBytes);
  return CallStack::Live(own_thread ? hooks->brief_live : hooks->live);
}

SampledEvent WakingSamples(const SessionOptions& options) {
  return {.event = EventSpec(kWakingEvent), .rate = Period{1}, .stack = options.waker_stacks};
}

constexpr uint64_t kMinorFaults = 16;  // faults for a sample: a live stack takes some 15 us, a fault under 1

bool IsPageFault(const EventSpec& event) {
  const absl::StatusOr<EventConfig> config = ParseEvent(event.text);
  if (!config.ok() || config->parts.empty() || config->parts[0].type != event::kPageFaults.type) return false;
  const uint64_t number = config->parts[0].config;
  return number == event::kPageFaults.config || number == event::kMinorFaults.config ||
         number == event::kMajorFaults.config;
}

// Adds samples of page faults if they are asked for, and the addresses of all page faults that are sampled. Beside some
// events the kernel samples each minor fault, whatever the period: if samples have their period. A stack for each would
// cost far more than the faults.
void AddFaults(const SessionOptions& options, SamplerOptions& sampler) {
  const auto has_faults = [&] {
    return std::ranges::any_of(sampler.events, [](const SampledEvent& one) { return IsPageFault(one.event); });
  };
  if (options.page_faults && !has_faults()) {
    const bool alone = options.events.empty();
    sampler.events.push_back({.event = event::kMinorFaults, .rate = Period{alone ? kMinorFaults : 1}, .stack = alone});
    sampler.events.push_back({.event = event::kMajorFaults, .rate = Period{1}});
  }
  if (has_faults()) sampler.fields |= kSampleAddr;
}

// Returns nullopt, and adds a note, if wakers can't be known.
std::optional<WakingFormat> FindWakings(const SessionOptions& options, std::vector<std::string>& notes) {
  if (!options.wakers) return std::nullopt;
  absl::StatusOr<WakingFormat> format = WakingFormat::Read();
  absl::Status status = format.status();
  if (status.ok()) {
    // Tried alone: if it were refused together with other events, the session would give up its stacks.
    const SamplerOptions alone{.events = {WakingSamples(options)}, .user_only = options.user_only};
    status = Sampler::Open(alone, Target::AllThreads()).status();
  }
  if (status.ok()) return *std::move(format);
  notes.push_back(absl::StrFormat("who woke threads is not known: %s", status.message()));
  return std::nullopt;
}

SamplerOptions OptionsOf(const SessionOptions& options, const CallStack& stack, bool wakers) {
  SamplerOptions sampler;
  sampler.events = options.events;
  if (sampler.events.empty()) {
    sampler.events.push_back({.event = "cpu-clock", .rate = Period{static_cast<uint64_t>(options.interval.count())}});
  }
  AddFaults(options, sampler);
  if (wakers) sampler.events.push_back(WakingSamples(options));
  sampler.stack = stack;
  // A sample in the kernel needs the pc that it returns to, with which its live stack begins.
  if (stack.kind == CallStack::Kind::kLive && !options.user_only) sampler.fields |= kSampleRegsUser;
  sampler.user_only = options.user_only;
  sampler.side_band = true;
  sampler.switches = options.clock == SessionClock::kWall;
  sampler.mode = options.mode;
  // Overwriting rings are the memory that holds the samples. Streaming ones are drained, so small ones are enough.
  if (options.mode == RingMode::kOverwrite) {
    sampler.ring_bytes = sampler.memory_bytes = options.memory_bytes;  // rings shrink until all fit
  } else {
    sampler.cpu_budget = options.cpu_budget;
  }
  return sampler;
}

}  // namespace

ProfileEvent EventOf(const EventSpec& event, bool user_only) {
  const absl::StatusOr<EventConfig> config = ParseEvent(event.text);
  const bool is_clock = config.ok() && config->unit == "ns";
  return {
      .name = event.text, .unit = is_clock ? ProfileUnit::kNanoseconds : ProfileUnit::kCount, .user_only = user_only};
}

namespace {

// Says how large the rings of a flight recorder are, and why rings are smaller than the options permit.
void AddRingNote(const SessionOptions& options, const Sampler& sampler, std::vector<std::string>& notes) {
  const bool overwrites = options.mode == RingMode::kOverwrite;
  const absl::Status& status = sampler.ring_status();
  if (overwrites) {
    notes.push_back(absl::StrFormat("flight recorder: %d rings of %d bytes", sampler.rings(), sampler.ring_bytes()));
  }
  // Rings that overwrite are as large as memory_bytes permits.
  if (!status.ok() && (!overwrites || sys::ErrnoOf(status) != 0)) notes.emplace_back(status.message());
}

// Adds the descriptions of the sampler's events.
OpenedSampler Describe(const SamplerOptions& options, Sampler sampler) {
  std::vector<ProfileEvent> events;
  for (const SampledEvent& event : options.events) {
    events.push_back(EventOf(event.event, sampler.user_only(events.size())));
  }
  std::vector<AggregatedEvent> sampled;
  for (const SampledEvent& event : options.events) {
    const bool user_only = events[sampled.size()].user_only;
    sampled.push_back({.first_follower = static_cast<uint32_t>(events.size()), .stack = event.stack});
    for (const EventSpec& follower : event.followers) {
      events.push_back(EventOf(follower, user_only));
      events.back().name += absl::StrFormat(" at %s", event.event.text);
    }
  }
  return {std::move(sampler), options.stack.kind, std::move(events), std::move(sampled), {}, {}};
}

// Returns `error`, with the stacks that were asked for if their component is missing; in words of the session's own
// options if it is about the memory of a flight recorder's rings (SamplerRings::ChooseSize): a session has no
// SamplerOptions, and chooses its rings itself.
absl::Status InOwnWords(const SessionOptions& options, absl::Status error) {
  if (absl::IsUnimplemented(error)) {
    return absl::Status(error.code(), absl::StrFormat("stacks \"%s\": %s", NameOf(options.stacks), error.message()));
  }
  const bool is_memory = error.message().find("rings of one page each") != std::string_view::npos;
  if (options.mode != RingMode::kOverwrite || !absl::IsResourceExhausted(error) || !is_memory) return error;
  return absl::Status(absl::StatusCode::kResourceExhausted,
                      absl::StrFormat("SessionOptions::memory_bytes is %d: too little: each CPU needs three rings "
                                      "of a page or more. Remedy: raise it.",
                                      options.memory_bytes));
}

}  // namespace

absl::StatusOr<OpenedSampler> OpenSampler(const SessionOptions& options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  std::vector<std::string> notes;
  std::optional<WakingFormat> wakings = FindWakings(options, notes);
  absl::Status error;
  for (const SessionStacks candidate : CandidatesFor(options.stacks)) {
    const absl::StatusOr<CallStack> stack = StackOf(candidate, options.own_thread);
    error = stack.status();
    if (stack.ok()) {
      const SamplerOptions sampler_options = OptionsOf(options, *stack, wakings.has_value());
      absl::StatusOr<Sampler> sampler = Sampler::Open(sampler_options, Target::AllThreads());
      if (sampler.ok()) {
        notes.push_back(absl::StrFormat("stacks: %s", NameOf(candidate)));
        AddRingNote(options, *sampler, notes);
        OpenedSampler opened = Describe(sampler_options, *std::move(sampler));
        opened.wakings = std::move(wakings);
        opened.notes = std::move(notes);
        return opened;
      }
      error = sampler.status();
    }
    notes.push_back(absl::StrFormat("no stacks by \"%s\": %s", NameOf(candidate), error.message()));
  }
  return InOwnWords(options, std::move(error));  // even the last candidate was refused
}

}  // namespace perfkit::session
