// An Aggregator for any process, and the accounting of the samplers. Unlike in a session, the samplers are the
// caller's: they may watch other processes or whole CPUs. So threads and mappings are known only by records and /proc.
#include "perfkit/profile_collector.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "src/session/aggregator.h"
#include "src/session/known_processes.h"
#include "src/session/open_sampler.h"
#include "src/session/sampler_accounting.h"
#include "src/session/stack_hooks.h"
#include "src/sys/clock.h"

namespace perfkit {
namespace {

constexpr size_t kMaxModuleNotes = 8;

bool HasStackHooks() { return &StackHookTable != nullptr; }

session::AggregatorOptions AnyProcessOptions(const SamplerOptions& sampled, const ProfileCollectorOptions& options) {
  session::AggregatorOptions result{.stacks = sampled.stack.kind,
                                    .pid = options.pid,
                                    .memory_bytes = options.memory_bytes,
                                    .demangle = options.demangle,
                                    .lines = HasStackHooks() && options.lines ? StackHookTable.lines : nullptr,
                                    .complete = sampled.mode != RingMode::kOverwrite};
  for (const SampledEvent& event : sampled.events) {
    result.events.push_back({.first_follower = static_cast<uint32_t>(sampled.events.size()), .stack = event.stack});
  }
  if (result.stacks != CallStack::Kind::kUserDump) return result;
  if (HasStackHooks()) {
    result.unwinder = StackHookTable.unwinder(kStitchBytes);
  } else {
    result.stacks = CallStack::Kind::kNone;
  }
  return result;
}

// Followers are left out: on whole CPUs their values are those of all threads.
std::vector<ProfileEvent> EventsOf(const SamplerOptions& sampled) {
  std::vector<ProfileEvent> events;
  for (const SampledEvent& event : sampled.events) events.push_back(session::EventOf(event.event, false));
  return events;
}

std::string DescribeStacks(CallStack::Kind kind) {
  switch (kind) {
    case CallStack::Kind::kNone: return "stacks: none";
    case CallStack::Kind::kFramePointers: return "stacks: frame pointers";
    case CallStack::Kind::kLive: return "stacks: live";
    case CallStack::Kind::kUserDump: break;
  }
  if (HasStackHooks()) return "stacks: dumps";
  return absl::StrFormat("no stacks by dumps: %s, or sample frame pointers", kNoStackHooks);
}

// Returns notes that say why code has no names.
std::vector<std::string> DescribeModules(const std::vector<SymbolizedModule>& modules) {
  std::vector<std::string> notes;
  size_t more = 0;
  for (const SymbolizedModule& module : modules) {
    if (module.status.ok()) continue;
    if (notes.size() == kMaxModuleNotes) {
      ++more;
    } else {
      notes.push_back(absl::StrFormat("no names of %s: %s", module.name, module.status.message()));
    }
  }
  if (more != 0) notes.push_back(absl::StrFormat("no names of %d more modules", more));
  return notes;
}

}  // namespace

struct ProfileCollector::Impl {
  Impl(const SamplerOptions& sampled, const ProfileCollectorOptions& options)
      : stacks(sampled.stack.kind),
        pid(options.pid),
        aggregator(EventsOf(sampled), AnyProcessOptions(sampled, options)) {}

  const CallStack::Kind stacks;
  const uint32_t pid;  // 0: any
  const uint64_t made_ns = sys::ClockNs(CLOCK_MONOTONIC);
  session::Aggregator aggregator;
};

ProfileCollector::ProfileCollector(const SamplerOptions& sampled, ProfileCollectorOptions options)
    : impl_(std::make_unique<Impl>(sampled, options)) {}
ProfileCollector::ProfileCollector(ProfileCollector&&) noexcept = default;
ProfileCollector& ProfileCollector::operator=(ProfileCollector&&) noexcept = default;
ProfileCollector::~ProfileCollector() = default;

void ProfileCollector::Add(const SamplerRecord& record, const SampleLayout& layout) {
  impl_->aggregator.Add(record, layout);
}

Profile ProfileCollector::MakeProfile(std::span<const Sampler> samplers) {
  const uint64_t now_ns = sys::ClockNs(CLOCK_MONOTONIC);
  Profile profile = impl_->aggregator.MakeProfile(now_ns, false, {});
  if (impl_->pid != 0) profile.program = session::FindName(impl_->pid, impl_->pid);
  profile.from_ns = impl_->made_ns, profile.to_ns = now_ns;
  profile.realtime_offset_ns = sys::RealtimeOffsetNs();
  std::vector<std::string>& notes = profile.accounting.notes;
  notes.insert(notes.begin(), DescribeStacks(impl_->stacks));
  for (const Sampler& sampler : samplers) {
    session::AddAccounting(profile, sampler.stats(), impl_->made_ns);
    for (size_t i = 0; i < profile.events.size(); ++i) {
      profile.events[i].user_only = profile.events[i].user_only || sampler.user_only(i);
    }
    const std::string reason(sampler.ring_status().message());
    if (!reason.empty() && std::find(notes.begin(), notes.end(), reason) == notes.end()) notes.push_back(reason);
  }
  for (std::string& note : DescribeModules(impl_->aggregator.modules())) notes.push_back(std::move(note));
  return profile;
}

}  // namespace perfkit
