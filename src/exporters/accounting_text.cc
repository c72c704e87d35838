// The accounting as sentences, for formats that have room for notes but no fields for it. A file outlives the program
// and its report, so it must say itself what it lacks. Numbers that are 0 are left out where 0 means "none"; nothing is
// left out because it is bad.
#include "src/exporters/accounting_text.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/profile/stack_losses.h"

namespace perfkit::exporters {
namespace {

using Numbers = std::initializer_list<std::pair<std::string_view, uint64_t>>;

// ", lost 3, paused 1": those that are not 0.
std::string Nonzero(Numbers numbers) {
  std::string text;
  for (const auto& [name, number] : numbers) {
    if (number != 0) text += absl::StrFormat(", %s %d", name, number);
  }
  return text;
}

// What the kernel counted, and where its samples went.
std::string KernelLine(const ProfileEvent& event) {
  const auto& kernel = event.accounting;
  if (kernel.counted == 0 && kernel.accounted() == 0) return event.name + ": has no count of the kernel's";
  return event.name +
         absl::StrFormat(": the kernel counted %s%d, samples: delivered %d",
                         kernel.counted_is_lower_bound ? "at least " : "", kernel.counted, kernel.delivered) +
         Nonzero({{"duplicates", kernel.duplicates},
                  {"lost", kernel.lost},
                  {"paused", kernel.paused},
                  {"malformed", kernel.malformed},
                  {"foreign", kernel.foreign},
                  {"times throttled", kernel.throttled},
                  {"represented", kernel.represented},
                  {"unsampled nanoseconds", kernel.unsampled_ns}});
}

// Empty without live stacks.
std::string LiveStackLine(const ProfileEvent& event) {
  const auto& stacks = event.accounting.stacks;
  if (stacks.accounted() == 0) return "";
  std::string line = event.name + absl::StrFormat(": live stacks: delivered %d", stacks.delivered) +
                     Nonzero({{"duplicates", stacks.duplicates}});
  for (const auto& [what, count] : profile::kStackLosses) line += Nonzero({{what, stacks.*count}});
  return line;
}

void AddEventLines(const Profile& profile, std::vector<std::string>& lines) {
  std::vector<Profile::Sum> totals(profile.events.size());
  for (const ProfileSample& sample : profile.samples) {
    totals[sample.event].weight += sample.weight;
    totals[sample.event].samples += sample.samples;
  }
  for (size_t i = 0; i < profile.events.size(); ++i) {
    const ProfileEvent& event = profile.events[i];
    lines.push_back(event.name + absl::StrFormat(": %d %s in %d samples%s", totals[i].weight,
                                                 ProfileUnitName(event.unit), totals[i].samples,
                                                 event.user_only ? ", user space only" : ""));
    lines.push_back(KernelLine(event));
    if (std::string live = LiveStackLine(event); !live.empty()) lines.push_back(std::move(live));
  }
}

std::string StackLine(const Profile& profile) {
  std::array<uint64_t, 5> counts{};
  for (const ProfileSample& sample : profile.samples) counts[static_cast<size_t>(sample.quality)] += sample.samples;
  std::string line = "stacks of samples:";
  for (size_t i = 0; i < counts.size(); ++i) {
    line += absl::StrFormat("%s %s %d", i == 0 ? "" : ",", StackQualityName(static_cast<StackQuality>(i)), counts[i]);
  }
  return line;
}

}  // namespace

std::vector<std::string> AccountingLines(const Profile& profile) {
  const ProfileAccounting& accounting = profile.accounting;
  std::vector<std::string> lines;
  lines.push_back("perfkit: " + (profile.program.empty() ? "a program" : profile.program) +
                  absl::StrFormat(", %d ns, %d threads, %d entries",
                                  profile.to_ns - std::min(profile.from_ns, profile.to_ns), profile.ThreadCount(),
                                  profile.samples.size()));
  AddEventLines(profile, lines);
  lines.push_back(StackLine(profile));
  const std::string missing = Nonzero({{"samples merged without their times", accounting.times_forgotten},
                                       {"stacks cut to their leaf or module", accounting.stacks_forgotten},
                                       {"dumps of stacks dropped", accounting.dumps_dropped},
                                       {"samples at other addresses", accounting.addresses_forgotten},
                                       {"waits in the totals only", accounting.waits_forgotten},
                                       {"zones and frames without times", accounting.zones_forgotten},
                                       {"frames not kept", accounting.frames_dropped},
                                       {"begins and ends of zones lost", accounting.zone_records_lost},
                                       {"parts of tasks without times", accounting.task_parts_forgotten},
                                       {"switches of tasks lost", accounting.task_records_lost},
                                       {"switches between threads lost", accounting.switches_lost},
                                       {"records of mappings and threads lost", accounting.side_band_lost},
                                       {"samples of no known event", accounting.unattributed}});
  lines.push_back("missing besides:" + (missing.empty() ? " nothing that is known" : missing.substr(1)));
  lines.push_back(absl::StrFormat(
      "cost: %d ns of this process's CPU time, %d ns of it for names and tables; about %d ns of the kernel's",
      accounting.own_cpu_ns, accounting.naming_cpu_ns, accounting.kernel_cpu_ns));
  lines.insert(lines.end(), accounting.notes.begin(), accounting.notes.end());
  return lines;
}

}  // namespace perfkit::exporters
