// Builds a Source, and builds it again for two reasons: the self-test found an inline path wrong, or threads started
// while the events were being opened.
#include "src/count/build_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/count/self_test.h"
#include "src/open/task_cpu.h"
#include "src/sys/fork_registry.h"

namespace perfkit::count {
namespace {

absl::Status CheckSize(Groups groups) {
  size_t events = 0;
  for (const std::vector<EventConfig>& group : groups) events += group.size();
  if (events == 0) return absl::InvalidArgumentError("a counter set needs at least one event");
  if (events <= kMaxEvents) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%d events were asked for in one set, which holds %d. Remedy: open "
                      "several sets.",
                      events, kMaxEvents));
}

// Returns true if `target` has threads now that are not in `before`. Such a thread may have inherited some events and
// not others, so the whole set has to be opened again.
absl::StatusOr<bool> GainedThreads(const Target& target, const std::vector<open::TaskCpu>& before) {
  const absl::StatusOr<std::vector<open::TaskCpu>> now = open::TaskCpusOf(target);
  if (!now.ok()) return now.status();
  return std::any_of(now->begin(), now->end(), [&](const open::TaskCpu& task_cpu) {
    return std::count(before.begin(), before.end(), task_cpu) == 0;
  });
}

bool HasManyThreads(const Target& target) {
  return target.kind == Target::Kind::kAllThreads || target.kind == Target::Kind::kProcess;
}

// Repeats until no thread has started meanwhile. Then all existing threads have events, and later ones inherit them.
absl::StatusOr<std::unique_ptr<Source>> BuildForThreads(Groups groups, const Target& target,
                                                        const CounterOptions& options) {
  constexpr int kTries = 16;
  for (int i = 0; i < kTries; ++i) {
    const absl::StatusOr<std::vector<open::TaskCpu>> before = open::TaskCpusOf(target);
    if (!before.ok()) return before.status();
    absl::StatusOr<std::unique_ptr<Source>> source = SourceBuilder(groups, target, options, 0).Build();
    if (!source.ok()) return source;
    const absl::StatusOr<bool> gained = GainedThreads(target, *before);
    if (!gained.ok()) return gained.status();
    if (!*gained) return source;
  }
  return absl::AbortedError(
      absl::StrFormat("%s: threads kept starting while they were being attached, %d times over. "
                      "Remedy: open the set before the threads start, or try again.",
                      open::Describe(target), kTries));
}

}  // namespace

EventConfig Placeholder(std::string name) {
  EventConfig config;
  config.name = std::move(name);
  config.parts.emplace_back();
  config.kernel_side = config.exclude_kernel = config.privilege_given = true;
  return config;
}

absl::StatusOr<std::unique_ptr<Source>> BuildSource(Groups groups, const Target& target,
                                                    const CounterOptions& options,
                                                    std::optional<bool> migrations_by_records) {
  if (absl::Status size = CheckSize(groups); !size.ok()) return size;
  // A fork in the middle would leave the child with descriptors that no listener knows yet.
  const sys::ForkBlocker fork_blocker;
  if (HasManyThreads(target)) return BuildForThreads(groups, target, options);
  absl::StatusOr<std::unique_ptr<Source>> source =
      SourceBuilder(groups, target, options, 0, migrations_by_records).Build();
  if (!source.ok() || !options.self_test || !(*source)->HasInlinePart()) return source;
  const uint32_t failed = FailedSelfTest(**source);
  if (failed == 0) return source;
  source->reset();  // Closes everything before it is opened again.
  return SourceBuilder(groups, target, options, failed, migrations_by_records).Build();
}

}  // namespace perfkit::count
