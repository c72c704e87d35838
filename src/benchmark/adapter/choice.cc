// Parses each element of a list alone, so that each can be refused alone: a report with two columns and a reason for
// the third is worth more than an error. Order is kept, as columns appear in it.
#include "src/benchmark/adapter/choice.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "perfkit/count.h"
#include "perfkit/format.h"
#include "perfkit/metric_set.h"
#include "src/base/text.h"

namespace perfkit::adapter {
namespace {

size_t CountOf(const Choice& choice) {
  size_t count = 0;
  for (const auto& group : choice.groups) count += group.size();
  return count;
}

void Refuse(Choice& choice, std::string_view name, std::string why_not) {
  choice.wanted.push_back({std::string(name), std::move(why_not)});
}

void Refuse(Choice& choice, std::string_view name, const absl::Status& status) {
  // InvalidArgument: the name has no meaning anywhere, so it is the user's mistake. All else is this machine's doing.
  if (status.code() == absl::StatusCode::kInvalidArgument && choice.wrong.empty())
    choice.wrong = std::string(status.message());
  std::string reason = FormatReason({}, status);
  reason.erase(std::min(reason.find(" ("), reason.size()));  // The reason will be in brackets itself.
  // A list with other separators arrives here as one long name.
  if (name.find_first_of(" ;") != name.npos) reason += "; commas separate events";
  Refuse(choice, name, std::move(reason));
}

bool HasEvent(const Choice& choice, std::string_view name) {
  return std::ranges::any_of(choice.wanted, [&](const Wanted& wanted) { return wanted.name == name; });
}

// Removes the events of `group` that are in `choice`, or earlier in `group`: a row has one column of each.
void DropRepeats(const Choice& choice, std::vector<EventConfig>& group) {
  std::vector<EventConfig> kept;
  for (EventConfig& event : group) {
    const bool again = std::ranges::any_of(kept, [&](const EventConfig& k) { return k.name == event.name; });
    if (!again && !HasEvent(choice, event.name)) kept.push_back(std::move(event));
  }
  group = std::move(kept);
}

// Adds `group`, but for the events that are in `choice` already. Columns and metrics find their events by name, in
// whatever group these are counted.
void AddGroup(Choice& choice, std::vector<EventConfig> group) {
  DropRepeats(choice, group);
  if (group.empty()) return;
  const size_t first = CountOf(choice);
  // A group as a whole: a part of it would count something else.
  const bool fits = first + group.size() <= kMaxEvents;
  for (size_t i = 0; i < group.size(); ++i) {
    choice.wanted.push_back({group[i].name, fits ? "" : "more events than a set holds", first + i});
  }
  if (fits) choice.groups.push_back(std::move(group));
}

void AddElement(Choice& choice, const std::string& element) {
  absl::StatusOr<std::vector<std::vector<EventConfig>>> groups = ParseEventList(element);
  if (!groups.ok()) return Refuse(choice, element, groups.status());
  for (std::vector<EventConfig>& group : *groups) AddGroup(choice, std::move(group));
}

void AddList(Choice& choice, std::string_view list) {
  const absl::StatusOr<std::vector<std::string>> elements = SplitEventList(list);
  if (!elements.ok()) return Refuse(choice, list, elements.status());
  for (const std::string& element : *elements) AddElement(choice, element);
}

// Adds `events`, a list, without columns.
void AddForMetrics(Choice& choice, std::string_view events) {
  const size_t before = choice.wanted.size();
  AddList(choice, events);
  for (size_t i = before; i < choice.wanted.size(); ++i) choice.wanted[i].for_metrics = true;
}

// Returns true if `metric` is in `choice` already, as it is written.
bool HasMetric(const Choice& choice, const Metric& metric) {
  return std::ranges::any_of(choice.metrics, [&](const WantedMetric& wanted) {
    return wanted.metric && wanted.metric->text() == metric.text();
  });
}

// Returns true if a column has the name of `metric`: the row would have one of the two numbers. The full names of
// columns are known when they are counted (run_sum.cc); the names that were written are compared here, to refuse it at
// once.
bool HasNameOfColumn(const Choice& choice, const Metric& metric) {
  const auto is_event = [&](const Wanted& wanted) { return !wanted.for_metrics && wanted.name == metric.name(); };
  const auto is_metric = [&](const WantedMetric& wanted) {
    return wanted.metric && wanted.name == metric.name() && wanted.metric->unit() == metric.unit();
  };
  return std::ranges::any_of(choice.wanted, is_event) || std::ranges::any_of(choice.metrics, is_metric);
}

void RefuseName(Choice& choice, const Metric& metric) {
  const std::string reason = absl::StrFormat("a column is called '%s'", metric.name());
  if (choice.wrong.empty()) {
    choice.wrong = absl::StrFormat("metric '%s': %s. Remedy: choose another name", metric.name(), reason);
  }
  choice.metrics.push_back({metric.text(), std::nullopt, reason});
}

// Returns false if the metric is refused.
bool PutMetric(Choice& choice, Metric metric) {
  if (HasMetric(choice, metric)) return true;
  if (HasNameOfColumn(choice, metric)) {
    RefuseName(choice, metric);
    return false;
  }
  const std::string name = metric.name();
  choice.metrics.push_back({name, std::move(metric), ""});
  return true;
}

// Adds a set of metrics by its name, with its groups.
void AddSet(Choice& choice, std::string_view name) {
  absl::StatusOr<MetricSet> set = FindMetricSet(name);
  absl::StatusOr<std::vector<std::vector<EventConfig>>> groups = set.ok() ? ParseEventList(set->events) : set.status();
  if (!groups.ok()) {
    choice.metrics.push_back({std::string(name), std::nullopt, FormatReason({}, groups.status())});
    return;
  }
  const size_t before = choice.wanted.size();
  for (std::vector<EventConfig>& group : *groups) AddGroup(choice, std::move(group));
  for (size_t i = before; i < choice.wanted.size(); ++i) choice.wanted[i].for_metrics = true;
  for (Metric& metric : set->metrics) PutMetric(choice, std::move(metric));
}

void AddMetric(Choice& choice, std::string_view text) {
  if (std::ranges::find(MetricSetNames(), text) != MetricSetNames().end()) return AddSet(choice, text);

  absl::StatusOr<Metric> metric = Metric::Parse(text);
  if (!metric.ok()) {
    const std::string message(metric.status().message());
    if (choice.wrong.empty()) choice.wrong = message;
    const size_t position = std::min(message.find("character "), message.size());
    choice.metrics.push_back({std::string(text), std::nullopt, message.substr(position)});
    return;
  }
  const std::vector<std::string> events = metric->events();
  if (!PutMetric(choice, *std::move(metric))) return;
  for (const std::string& event : events) {
    if (!HasEvent(choice, event)) AddForMetrics(choice, event);
  }
}

}  // namespace

void AddMetrics(Choice& choice, std::string_view list) {
  base::ForEachPiece(list, ';', [&](std::string_view piece) {
    if (const std::string_view text = base::Trim(piece); !text.empty()) AddMetric(choice, text);
  });
}

Choice Choose(std::string_view list) {
  Choice choice;
  AddList(choice, list);
  return choice;
}

Choice Choose(std::span<const EventSpec> events) {
  Choice choice;
  for (const EventSpec& spec : events) {
    if (!spec.type) {
      AddList(choice, spec.text);
      continue;
    }
    absl::StatusOr<EventConfig> event = ResolveEvent(spec);
    if (!event.ok()) {
      Refuse(choice, spec.text, event.status());
      continue;
    }
    std::vector<EventConfig> group;
    group.push_back(*std::move(event));
    AddGroup(choice, std::move(group));
  }
  return choice;
}

}  // namespace perfkit::adapter
