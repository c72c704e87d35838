// The top of a report: how the profile was made, and what is missing in it. Numbers that are always of interest are a
// table with a row for each event. Numbers that are 0 in a sound profile are lines, printed only if they are not 0. "-"
// stands for what was not counted: a 0 would say that nothing happened.
#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_format.h"
#include "src/profile/report_sections.h"
#include "src/profile/stack_losses.h"
#include "src/profile/text_table.h"

namespace perfkit::profile {
namespace {

// Returns true if the kernel counted this event: followers and off-CPU time have no accounting.
bool IsCounted(const ProfileEvent& event) {
  return event.accounting.counted != 0 || event.accounting.accounted() != 0 || event.accounting.counted_is_lower_bound;
}

// Followers have weights and no samples.
bool IsFollower(const Profile::Sum& event) { return event.samples == 0 && event.weight != 0; }

std::string EventTable(const ReportContext& context) {
  TextTable table(
      {{"event"}, {"total", true}, {"samples", true}, {"counted", true}, {"lost", true}, {"unsampled", true}});
  const Profile& profile = context.profile;
  for (size_t i = 0; i < profile.events.size(); ++i) {
    const ProfileEvent& event = profile.events[i];
    const Profile::Sum total = profile.Total(i);
    const bool counted = IsCounted(event);
    const bool is_clock = event.unit == ProfileUnit::kNanoseconds && event.accounting.counted != 0;
    const std::string least = event.accounting.counted_is_lower_bound ? ">= " : "";
    table.AddRow({event.name + (event.user_only ? " (user only)" : ""), WeightText(total.weight, event.unit),
                  SamplesText(total, total.samples),
                  counted ? least + WeightText(event.accounting.counted, event.unit) : "-",
                  counted ? CountText(event.accounting.lost) : "-",
                  is_clock ? PercentText(event.accounting.unsampled_ns, event.accounting.counted) + " %" : "-"});
  }
  return table.Format(context.options.width, "# ");
}

// Appends "7 duplicates dropped" to a list; nothing if there are none.
void AppendCount(std::string& list, uint64_t count, std::string_view what) {
  if (count != 0) list += absl::StrFormat("%s%s %s", list.empty() ? "" : ", ", CountText(count), what);
}

// "stacks not taken (5 not signalled, 2 over the walk limit)"
std::string StacksNotTaken(const StackAccounting& stacks) {
  std::string causes;
  for (const auto& [what, count] : kStackLosses) AppendCount(causes, stacks.*count, what);
  return absl::StrFormat("stack%s not taken (%s)", stacks.skipped() == 1 ? "" : "s", causes);
}

// Numbers that are 0 in a sound profile, as words: one line an event.
std::string EventTroubles(const Profile& profile) {
  std::string text;
  for (const ProfileEvent& event : profile.events) {
    const EventAccounting& accounting = event.accounting;
    std::string troubles;
    AppendCount(troubles, accounting.paused, "samples while paused");
    AppendCount(troubles, accounting.duplicates, "duplicates dropped");
    AppendCount(troubles, accounting.malformed, "malformed samples");
    AppendCount(troubles, accounting.throttled, "times throttled");
    AppendCount(troubles, accounting.stacks.skipped(), StacksNotTaken(accounting.stacks));
    if (!troubles.empty()) text += absl::StrFormat("# %s: %s\n", OneLine(event.name), troubles);
  }
  return text;
}

std::string ProfileTroubles(const ProfileAccounting& accounting) {
  std::string text;
  const auto add = [&](uint64_t count, std::string_view what) {
    if (count != 0) text += absl::StrFormat("# %s %s\n", CountText(count), what);
  };
  add(accounting.stacks_forgotten, "stacks cut to their leaf or module: the tables were full");
  add(accounting.dumps_dropped, "stacks cut to their leaf: dumps came faster than they could be unwound");
  add(accounting.addresses_forgotten, "samples at other addresses of a module: the tables were full");
  add(accounting.times_forgotten, "samples merged without their times");
  add(accounting.waits_forgotten, "waits in the totals only");
  add(accounting.zones_forgotten, "zones and frames without times");
  add(accounting.frames_dropped, "frames not kept: the room for them was used up");
  add(accounting.zone_records_lost, "begins and ends of zones lost: samples there are labelled \"[zone unknown]\"");
  add(accounting.task_parts_forgotten, "parts of tasks without times");
  add(accounting.task_records_lost, "switches of tasks lost: samples there are labelled \"[task unknown]\"");
  add(accounting.switches_lost, "switches between threads lost: who preempted threads is not known there");
  add(accounting.side_band_lost, "records of mappings and threads lost: names may be missing");
  add(accounting.unattributed, "samples of no known event: left out");
  if (accounting.own_cpu_ns != 0 || accounting.kernel_cpu_ns != 0) {
    const auto time = [](uint64_t ns) { return WeightText(ns, ProfileUnit::kNanoseconds); };
    const std::string naming = accounting.naming_cpu_ns == 0 ? ""
                                                             : absl::StrFormat(" (%s of it for names and tables)",
                                                                               time(accounting.naming_cpu_ns));
    text += absl::StrFormat("# cost: %s of CPU time in this process%s, about %s in the kernel\n",
                            time(accounting.own_cpu_ns), naming, time(accounting.kernel_cpu_ns));
  }
  for (const std::string& note : accounting.notes) text += absl::StrFormat("# %s\n", OneLine(note));
  return text;
}

// The samples of the event by the quality of their stacks, and those with doubtful frames, as shares of all its
// samples.
std::string StackQualities(const ReportContext& context) {
  const Profile& profile = context.profile;
  // A stack has a guessed frame if its innermost frame is one, or if its parent has one. Parents have smaller indexes,
  // so one loop suffices.
  std::vector<char> guessed(profile.stacks.size()), stitched(profile.stacks.size());
  for (size_t i = 0; i < profile.stacks.size(); ++i) {
    const ProfileStack& stack = profile.stacks[i];
    const bool has_parent = stack.parent != ProfileStack::kRoot;
    guessed[i] = stack.is_guess || (has_parent && guessed[stack.parent] != 0) ? 1 : 0;
    stitched[i] = stack.is_stitched || (has_parent && stitched[stack.parent] != 0) ? 1 : 0;
  }
  std::array<uint64_t, 5> by_quality{};
  uint64_t with_guess = 0, with_stitch = 0, all = 0;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event != context.event) continue;
    const uint64_t samples = sample.samples == 0 ? 1 : sample.samples;  // followers have stacks too
    all += samples;
    by_quality[static_cast<size_t>(sample.quality)] += samples;
    if (sample.stack == ProfileStack::kRoot) continue;
    if (guessed[sample.stack] != 0) with_guess += samples;
    if (stitched[sample.stack] != 0) with_stitch += samples;
  }
  std::string text;
  const auto add = [&](uint64_t count, std::string_view what) {
    if (count != 0) text += absl::StrFormat("%s%s %% %s", text.empty() ? "" : ", ", PercentText(count, all), what);
  };
  for (size_t i = 0; i < by_quality.size(); ++i) add(by_quality[i], StackQualityName(static_cast<StackQuality>(i)));
  add(with_guess, "with guessed frames");
  add(with_stitch, "stitched");
  if (text.empty()) return "";
  return absl::StrFormat("# stacks of %s: %s\n", OneLine(profile.events[context.event].name), text);
}

}  // namespace

std::string SamplesText(const Profile::Sum& event, uint64_t samples) {
  return IsFollower(event) ? "-" : CountText(samples);
}

std::string SumText(const Profile::Sum& event, ProfileUnit unit) {
  return absl::StrFormat("%s in %s samples", WeightText(event.weight, unit),
                         IsFollower(event) ? "another event's" : CountText(event.samples));
}

std::string AccountingSection(const ReportContext& context) {
  const Profile& profile = context.profile;
  std::string text = absl::StrFormat(
      "# %s: %s, %s thread%s\n#\n", profile.program.empty() ? "(unnamed program)" : OneLine(profile.program),
      WeightText(profile.to_ns - std::min(profile.from_ns, profile.to_ns), ProfileUnit::kNanoseconds),
      CountText(profile.ThreadCount()), profile.ThreadCount() == 1 ? "" : "s");
  text += EventTable(context) + EventTroubles(profile) + "#\n";
  return text + StackQualities(context) + ProfileTroubles(profile.accounting);
}

}  // namespace perfkit::profile
