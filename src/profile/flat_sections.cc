// The flat tables of a report: functions, modules or lines; threads; waits. Each has its rows by weight, at most
// max_lines of them, and the first down to min_percent. A last line says how many more there are, and which share they
// have.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/profile/report_sections.h"
#include "src/profile/text_table.h"
#include "src/profile/wait_text.h"

namespace perfkit::profile {
namespace {

std::string ModuleText(const Profile& profile, uint32_t module) {
  if (module == ProfileLocation::kNoModule) return "[unknown]";
  return std::string(FileName(profile.strings[profile.modules[module].path]));
}

std::string LineText(const Profile& profile, const ReportFunction& function) {
  if (function.file == 0) return "";
  const std::string file(FileName(profile.strings[function.file]));
  return function.line == 0 ? file : absl::StrFormat("%s:%d", file, function.line);
}

std::string FunctionText(const Profile& profile, const ReportFunction& function) {
  return (function.kernel ? "[k] " : "[.] ") + FunctionName(profile, function);
}

std::vector<TextTable::Column> FlatColumns(ReportKey key, bool by_thread) {
  constexpr auto kShort = TextTable::Shrink::kShort, kLong = TextTable::Shrink::kLong;
  std::vector<TextTable::Column> columns = {{"self %", true}, {"total %", true}, {"self", true}, {"samples", true}};
  if (key == ReportKey::kTask) columns.push_back({.title = "task", .shrink = kLong});
  if (key == ReportKey::kThread) {
    columns.push_back({.title = "thread", .shrink = kLong});
  } else if (by_thread) {
    columns.push_back({.title = "thread", .max = 24, .shrink = kShort});
  }
  if (key == ReportKey::kModule) columns.push_back({.title = "module", .shrink = kLong});
  if (key == ReportKey::kLine) columns.push_back({.title = "line", .max = 32, .shrink = kShort});
  if (key == ReportKey::kFunction || key == ReportKey::kLine) {
    columns.push_back({.title = "module", .max = 24, .shrink = kShort});
    columns.push_back({.title = "function", .shrink = kLong});
  }
  if (key == ReportKey::kFunction) columns.push_back({.title = "file:line", .max = 32, .shrink = kShort});
  return columns;
}

std::string TaskText(const Profile& profile, uint32_t task) {
  return task == 0 ? "(outside of tasks)" : profile.strings[task];
}

std::vector<std::string> FlatNames(const Profile& profile, ReportKey key, const FlatProfile::Row& row) {
  switch (key) {
    case ReportKey::kThread: return {ThreadText(profile, row.thread)};
    case ReportKey::kTask: return {TaskText(profile, row.task)};
    case ReportKey::kModule: return {ModuleText(profile, row.module)};
    case ReportKey::kLine:
      return {LineText(profile, row.function), ModuleText(profile, row.module), FunctionText(profile, row.function)};
    case ReportKey::kFunction: break;
  }
  return {ModuleText(profile, row.module), FunctionText(profile, row.function), LineText(profile, row.function)};
}

std::string_view KeyName(ReportKey key) {
  constexpr std::string_view kNames[] = {"functions", "modules", "lines", "threads", "tasks"};
  return kNames[static_cast<size_t>(key)];
}

std::string WaitName(const Profile& profile, uint32_t index) {
  if (index == ProfileSample::kNoWait) return "(not known)";
  const ProfileWait& wait = profile.waits[index];
  if (wait.preempted && wait.preempter.is_known()) {
    ProfilePreempter longest = wait.preempter;
    longest.others = 0;  // so that waits with the same preempter are one line
    return absl::StrCat("(preempted by ", PreempterText(profile, longest), ")");
  }
  if (wait.preempted) return "(preempted: others ran, or a CPU quota was used up)";
  const std::string text = WaitText(profile, wait);
  return text.empty() ? "(not known)" : text;
}

// How much of self is in code without a name, and in which modules most of it: each address is a function of its own
// then.
std::string Unnamed(const ReportContext& context, const FlatProfile& flat) {
  std::map<std::string, uint64_t> modules;
  uint64_t all = 0;
  for (size_t i = 0; i < flat.rows().size(); ++i) {
    const uint64_t weight = flat.Self(i, context.event).weight;
    if (flat.rows()[i].function.name != 0 || weight == 0) continue;
    modules[OneLine(ModuleText(context.profile, flat.rows()[i].module))] += weight;
    all += weight;
  }
  if (!context.IsShown(all)) return "";
  std::vector<std::pair<uint64_t, std::string>> sorted;
  for (const auto& [module, weight] : modules) sorted.emplace_back(weight, module);
  std::sort(sorted.rbegin(), sorted.rend());
  constexpr size_t kModules = 3, kColumns = 24;
  std::string names;
  for (size_t i = 0; i < std::min(sorted.size(), kModules); ++i) {
    names += (i == 0 ? "" : ", ") + CutMiddle(sorted[i].second, kColumns);
  }
  return absl::StrFormat("# %s %% of self is in code without names: %s%s\n", PercentText(all, context.total.weight),
                         names, sorted.size() > kModules ? ", ..." : "");
}

struct WaitSum {
  Profile::Sum sum{};
  uint64_t longest_ns = 0;  // Of the waits that are known one by one.
  // The longest merged sample: the sum of several waits, so none was longer.
  uint64_t merged_ns = 0;
};

// "1.500 ms"; ">=1.500 ms" if one of those that were merged may have been longer.
std::string LongestText(const WaitSum& wait) {
  if (wait.longest_ns == 0) return "-";
  return (wait.merged_ns > wait.longest_ns ? ">=" : "") + WeightText(wait.longest_ns, ProfileUnit::kNanoseconds);
}

// A table of threads or tasks, one line each, down to the smallest share. `more`: further columns, before the name;
// more_cells(flat, row) returns their cells.
template <class MoreCells>
std::string SummarySection(const ReportContext& context, ReportKey key, const std::vector<TextTable::Column>& more,
                           MoreCells&& more_cells) {
  const Profile& profile = context.profile;
  const ProfileEvent& event = profile.events[context.event];
  const FlatProfile flat(profile, {.key = key, .event = context.event});
  std::vector<TextTable::Column> columns = {{"%", true}, {event.name, true, 24}, {"samples", true}};
  columns.insert(columns.end(), more.begin(), more.end());
  columns.push_back(FlatColumns(key, false).back());
  TextTable table(std::move(columns));
  size_t left_out = 0;
  uint64_t left_out_self = 0;
  for (size_t i = 0; i < flat.rows().size(); ++i) {
    const Profile::Sum self = flat.Self(i, context.event);
    if (context.IsFull(table.rows())) {
      ++left_out;
      left_out_self += self.weight;
      continue;
    }
    std::vector<std::string> cells = {PercentText(self.weight, context.total.weight),
                                      WeightText(self.weight, event.unit), SamplesText(context.total, self.samples)};
    for (std::string& cell : more_cells(flat, i)) cells.push_back(std::move(cell));
    cells.push_back(FlatNames(profile, key, flat.rows()[i]).front());
    table.AddRow(std::move(cells));
  }
  return absl::StrFormat("#\n# %s\n#\n", KeyName(key)) + table.Format(context.options.width) +
         LeftOut(left_out, KeyName(key), PercentText(left_out_self, context.total.weight), "max_lines");
}

}  // namespace

std::string LeftOut(size_t rows, std::string_view what, const std::string& share, std::string_view options) {
  if (rows == 0) return "";
  return absl::StrFormat("# %s more %s%s (%s)\n", CountText(rows), what,
                         share.empty() ? "" : absl::StrFormat(", together %s %%", share), options);
}

bool ReportContext::IsShown(uint64_t weight) const {
  return weight != 0 && 100 * static_cast<double>(weight) >= options.min_percent * static_cast<double>(total.weight);
}

std::string FlatSection(const ReportContext& context) {
  const ReportOptions& options = context.options;
  const Profile& profile = context.profile;
  const ProfileEvent& event = profile.events[context.event];
  const bool by_thread = options.by_thread && options.key != ReportKey::kThread && options.key != ReportKey::kTask;
  const FlatProfile flat(
      profile, {.key = options.key, .event = context.event, .by_total = options.children, .by_thread = by_thread});
  TextTable table(FlatColumns(options.key, by_thread));
  size_t left_out = 0;
  uint64_t left_out_self = 0;
  for (size_t i = 0; i < flat.rows().size(); ++i) {
    const Profile::Sum self = flat.Self(i, context.event), total = flat.Total(i, context.event);
    if (context.IsFull(table.rows()) || !context.IsShown(options.children ? total.weight : self.weight)) {
      left_out += total.weight != 0 ? 1 : 0;
      left_out_self += self.weight;
      continue;
    }
    std::vector<std::string> cells = {PercentText(self.weight, context.total.weight),
                                      PercentText(total.weight, context.total.weight),
                                      WeightText(self.weight, event.unit), SamplesText(context.total, self.samples)};
    if (by_thread) cells.push_back(ThreadText(profile, flat.rows()[i].thread));
    for (std::string& name : FlatNames(profile, options.key, flat.rows()[i])) cells.push_back(std::move(name));
    table.AddRow(std::move(cells));
  }
  std::string text =
      absl::StrFormat("#\n# %s%s of %s, by %s; 100 %% is %s\n#\n", KeyName(options.key), by_thread ? " by thread" : "",
                      OneLine(event.name), options.children ? "total" : "self", SumText(context.total, event.unit));
  text += table.Format(options.width);
  text += LeftOut(left_out, KeyName(options.key), PercentText(left_out_self, context.total.weight));
  return text + (options.key == ReportKey::kFunction ? Unnamed(context, flat) : "");
}

std::string ThreadSection(const ReportContext& context) {
  const Profile& profile = context.profile;
  return SummarySection(
      context, ReportKey::kThread, {{"on CPU", true}, {"off CPU", true}}, [&](const FlatProfile& flat, size_t row) {
        const ProfileThread& thread = profile.threads[flat.rows()[row].thread];
        const bool watched = thread.on_ns != 0 || thread.off_ns != 0;
        return std::vector<std::string>{watched ? WeightText(thread.on_ns, ProfileUnit::kNanoseconds) : "-",
                                        watched ? WeightText(thread.off_ns, ProfileUnit::kNanoseconds) : "-"};
      });
}

std::string TaskSection(const ReportContext& context) {
  const Profile& profile = context.profile;
  const auto has_task = [](const ProfileSample& sample) { return sample.task != 0; };
  if (std::none_of(profile.samples.begin(), profile.samples.end(), has_task)) return "";
  const size_t off_cpu = profile.EventIndex(kOffCpuEvent);
  const bool has_waits = off_cpu != profile.events.size();
  return SummarySection(context, ReportKey::kTask, {{"off CPU", true}}, [&](const FlatProfile& flat, size_t row) {
    return std::vector<std::string>{has_waits ? WeightText(flat.Self(row, off_cpu).weight, ProfileUnit::kNanoseconds)
                                              : "-"};
  });
}

std::string WaitSection(const ReportContext& context) {
  const Profile& profile = context.profile;
  const size_t off_cpu = profile.EventIndex(kOffCpuEvent);
  // Waits are summed by their text: kinds that read the same are one row.
  std::map<std::string, WaitSum> waits;
  uint64_t all = 0;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event != off_cpu) continue;
    WaitSum& wait = waits[WaitName(profile, sample.wait)];
    wait.sum.weight += sample.weight;
    wait.sum.samples += sample.samples;
    uint64_t& longest_ns = sample.samples == 1 ? wait.longest_ns : wait.merged_ns;
    longest_ns = std::max(longest_ns, sample.weight);
    all += sample.weight;
  }
  if (waits.empty()) return "";
  std::vector<std::pair<std::string, WaitSum>> sorted(waits.begin(), waits.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.sum.weight > b.second.sum.weight; });
  TextTable table({{"%", true},
                   {"time", true},
                   {"waits", true},
                   {"longest", true},
                   {.title = "waited for", .shrink = TextTable::Shrink::kLong}});
  size_t left_out = 0;
  uint64_t left_out_weight = 0;
  for (const auto& [text, wait] : sorted) {
    if (context.IsFull(table.rows())) {
      ++left_out;
      left_out_weight += wait.sum.weight;
      continue;
    }
    table.AddRow({PercentText(wait.sum.weight, all), WeightText(wait.sum.weight, ProfileUnit::kNanoseconds),
                  CountText(wait.sum.samples), LongestText(wait), text});
  }
  return "#\n# time off the CPU, by what was waited for\n#\n" + table.Format(context.options.width) +
         LeftOut(left_out, "kinds of waits", PercentText(left_out_weight, all), "max_lines");
}

}  // namespace perfkit::profile
