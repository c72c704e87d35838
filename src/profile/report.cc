// Puts a report together from its sections. A report is always text: an error (a profile that does not fit together, an
// event that it does not have) is the text itself, because a report is printed and not looked into.
#include "perfkit/report.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "perfkit/profile_writer.h"
#include "src/profile/event_choice.h"
#include "src/profile/report_sections.h"
#include "src/profile/sink_buffer.h"
#include "src/profile/text_table.h"

namespace perfkit {

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
    const uint64_t span_ns = profile.to_ns - std::min(profile.from_ns, profile.to_ns);
    text += absl::StrFormat("#\n# %s has no weight in %s: there is nothing to show\n", profile.events[*event].name,
                            profile::WeightText(span_ns, ProfileUnit::kNanoseconds));
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
