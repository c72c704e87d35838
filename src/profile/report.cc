// Puts a report together from its sections. A report is always text: an error (a profile that does not fit together, an
// event that it does not have) is the text itself, because a report is printed and not looked into.
#include "perfkit/report.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "perfkit/profile_writer.h"
#include "src/profile/event_choice.h"
#include "src/profile/report_sections.h"
#include "src/profile/sink_buffer.h"
#include "src/profile/text_table.h"

namespace perfkit {
namespace {

// Says why, and what else there is.
std::string NothingToShow(const Profile& profile, size_t index) {
  const ProfileEvent& event = profile.events[index];
  const uint64_t span_ns = profile.to_ns - std::min(profile.from_ns, profile.to_ns);
  std::string text = absl::StrFormat("#\n# %s has no weight in %s: there is nothing to show\n", event.name,
                                     profile::WeightText(span_ns, ProfileUnit::kNanoseconds));
  if (event.accounting.delivered != 0) {
    absl::StrAppendFormat(&text, "# it has %d samples, but none of them is here\n", event.accounting.delivered);
  } else if (event.accounting.counted != 0) {
    absl::StrAppend(&text, "# it counted ", profile::WeightText(event.accounting.counted, event.unit),
                    " without a sample here: a shorter period or interval takes more samples\n");
  }
  std::vector<std::string> others;
  for (size_t i = 0; i < profile.events.size(); ++i) {
    if (profile.Total(i).weight != 0) others.push_back(profile.events[i].name);
  }
  if (!others.empty()) absl::StrAppend(&text, "# events with a weight: ", absl::StrJoin(others, ", "), "\n");
  return text;
}

}  // namespace

std::string FormatReport(const Profile& profile, const ReportOptions& options) {
  if (const absl::Status status = profile.Check(); !status.ok()) return std::string(status.message()) + "\n";
  if (profile.events.empty()) return "# the profile has no events\n";
  const absl::StatusOr<size_t> event = profile::ChooseEvent(profile, options.event);
  if (!event.ok()) return std::string(event.status().message()) + "\n";
  ReportOptions adjusted = options;
  // Narrower tables would cut names to nothing.
  adjusted.width = std::max<size_t>(options.width, 100);
  const profile::ReportContext context{
      .profile = profile, .options = adjusted, .event = *event, .total = profile.Total(*event)};
  std::string text;
  if (options.accounting) text = profile::AccountingSection(context);
  if (context.total.weight == 0) {
    text += NothingToShow(profile, *event);
  } else {
    text += profile::FlatSection(context);
    if (options.call_tree) text += profile::CallTreeSection(context);
    text += profile::ThreadSection(context);
  }
  return text + profile::TaskSection(context) + profile::WaitSection(context);
}

absl::Status WriteReport(const Profile& profile, const WriteOptions& options, ProfileSink sink) {
  if (!options.event.empty() || !profile.events.empty()) {
    const absl::StatusOr<size_t> event = profile::ChooseEvent(profile, options.event);
    if (!event.ok()) return event.status();
  }
  profile::SinkBuffer out(sink);
  out.Add(FormatReport(profile, {.event = options.event}));
  return out.Finish();
}

}  // namespace perfkit
