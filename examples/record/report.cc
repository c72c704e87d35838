// Prints tables.
#include "report.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <variant>

namespace record {
namespace {

double Percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

// Of a path; "//anon" and "[vdso]" are none.
std::string FileName(std::string_view path) {
  const bool is_path = path.starts_with('/') && !path.starts_with("//");
  return std::string(is_path ? path.substr(path.rfind('/') + 1) : path);
}

void PrintTable(Profile& profile, size_t event, uint32_t tid, size_t top) {
  const Weight total = profile.Total(event, tid);
  absl::PrintF("%8s %9s  %-56s  %s\n", "self %", "samples", "function", "module");
  uint64_t left = total.samples, left_events = total.events;
  for (const Line& line : profile.Hottest(event, tid)) {
    if (top-- == 0) break;
    const std::string function = (line.kernel ? "[k] " : "") + std::string(line.function);
    absl::PrintF("%8.2f %9d  %-56s  %s\n", Percent(line.self.events, total.events), line.self.samples, function,
                 FileName(line.module));
    left -= line.self.samples;
    left_events -= line.self.events;
  }
  if (left > 0) absl::PrintF("%8.2f %9d  %s\n", Percent(left_events, total.events), left, "all others");
}

// Accounting of one event over all samplers: one a target.
perfkit::EventAccounting SumAccounting(const std::vector<perfkit::SamplerStats>& stats, size_t event) {
  perfkit::EventAccounting sum;
  for (const perfkit::SamplerStats& one : stats) {
    const perfkit::EventAccounting& accounting = one.events[event];
    sum.counted += accounting.counted;
    sum.delivered += accounting.delivered;
    sum.duplicates += accounting.duplicates;
    sum.lost += accounting.lost;
    sum.paused += accounting.paused;
    sum.malformed += accounting.malformed;
    sum.throttled += accounting.throttled;
    sum.unsampled_ns += accounting.unsampled_ns;
  }
  return sum;
}

bool IsClock(const std::string& event) { return event.starts_with("cpu-clock") || event.starts_with("task-clock"); }

// Whether the accounting balances, in words: exactly for events of period 1; of clocks, what no sample stands for; of
// others, what the samples stand for.
std::string Verdict(const Options& options, const std::string& event, const perfkit::EventAccounting& accounting,
                    const Weight& total) {
  if (IsClock(event)) {
    return absl::StrFormat(
        "%.3f s of %.3f s have no sample (%.2f %%)", static_cast<double>(accounting.unsampled_ns) / 1e9,
        static_cast<double>(accounting.counted) / 1e9, Percent(accounting.unsampled_ns, accounting.counted));
  }
  const auto* const period = std::get_if<perfkit::Period>(&options.rate);
  if (period != nullptr && period->events == 1) {
    if (accounting.accounted() == accounting.counted) return "the accounting balances";
    return absl::StrFormat("the accounting does NOT balance: %d of %d are accounted for", accounting.accounted(),
                           accounting.counted);
  }
  return absl::StrFormat("samples stand for %.2f %%", Percent(total.events, accounting.counted));
}

void PrintAccounting(const Options& options, const std::vector<perfkit::SamplerStats>& stats, const Profile& profile) {
  absl::PrintF("\n%-24s %14s %10s %6s %6s %6s %9s\n", "accounting", "counted", "delivered", "lost", "twice", "bad",
               "throttled");
  for (size_t i = 0; i < options.events.size(); ++i) {
    const perfkit::EventAccounting accounting = SumAccounting(stats, i);
    absl::PrintF("%-24s %14d %10d %6d %6d %6d %9d   %s\n", options.events[i], accounting.counted, accounting.delivered,
                 accounting.lost, accounting.duplicates, accounting.malformed, accounting.throttled,
                 Verdict(options, options.events[i], accounting, profile.Total(i, 0)));
  }
}

void PrintExtras(const Options& options, const std::vector<perfkit::SamplerStats>& stats, const Profile& profile) {
  if (options.stack.kind == perfkit::CallStack::Kind::kUserDump) {
    absl::PrintF("stacks: %.1f KiB of them came with %d samples; they are counted here, and not unwound\n",
                 static_cast<double>(profile.stack_bytes()) / 1024, profile.samples());
  } else if (options.stack.kind == perfkit::CallStack::Kind::kFramePointers) {
    absl::PrintF("stacks: %d of %d samples have a call chain by frame pointers; they are counted here, not shown\n",
                 profile.chains(), profile.samples());
  }
  if (options.branches) absl::PrintF("branches: %d in %d samples\n", profile.branches(), profile.samples());
  for (const perfkit::SamplerStats& one : stats) {
    if (one.lost_is_lower_bound) absl::PrintF("lost: at least; kernels before 6.0 do not say exactly\n");
    if (one.side_band_lost > 0) {
      absl::PrintF("lost: %d records of what is mapped and who runs: names may be missing\n", one.side_band_lost);
    }
  }
}

// Why code has no name, once a module.
void PrintUnnamed(const Profile& profile) {
  for (const perfkit::SymbolizedModule& module : profile.modules()) {
    if (!module.status.ok()) {
      absl::PrintF("no names: %s: %s\n", FileName(module.name), std::string(module.status.message()));
    } else if (module.symbols == 0) {
      absl::PrintF("no names: %s has no symbols\n", FileName(module.name));
    }
  }
}

}  // namespace

void Report(const Options& options, const std::vector<perfkit::Sampler>& samplers, Profile& profile,
            const Durations& durations) {
  std::vector<perfkit::SamplerStats> stats;
  for (const perfkit::Sampler& sampler : samplers) stats.push_back(sampler.stats());
  for (size_t i = 0; i < options.events.size(); ++i) {
    const bool user_only = std::any_of(samplers.begin(), samplers.end(), [&](const auto& s) { return s.user_only(i); });
    absl::PrintF("%s%s, %.2f s, %d samples\n", options.events[i],
                 user_only ? " (user space only: this user may not see the kernel)" : "", durations.sampled_s,
                 profile.Total(i, 0).samples);
    if (!options.by_thread) PrintTable(profile, i, 0, options.top);
    for (const uint32_t tid : options.by_thread ? profile.Threads(i) : std::vector<uint32_t>()) {
      absl::PrintF("\nthread %d, %s, %.2f %%\n", tid, profile.ThreadName(tid),
                   Percent(profile.Total(i, tid).events, profile.Total(i, 0).events));
      PrintTable(profile, i, tid, options.top);
    }
  }
  PrintAccounting(options, stats, profile);
  PrintExtras(options, stats, profile);
  PrintUnnamed(profile);
  const uint64_t own_ns = std::accumulate(stats.begin(), stats.end(), uint64_t{0},
                                          [](uint64_t sum, const auto& one) { return sum + one.own_cpu_ns; });
  absl::PrintF("own cost: %.2f %% of a CPU to read the rings (%.1f ms)\n",
               static_cast<double>(own_ns) / 1e7 / durations.read_s, static_cast<double>(own_ns) / 1e6);
}

}  // namespace record
