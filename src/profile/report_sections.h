// The sections of a report, each as text (report.h says what they show).
#pragma once

#include <cstddef>
#include <string>

#include "perfkit/report.h"

namespace perfkit::profile {

// What all sections are about.
struct ReportContext {
  const Profile& profile;
  const ReportOptions& options;
  size_t event = 0;      // in Profile::events
  Profile::Sum total{};  // of the event

  // A row or node with this much weight is shown.
  bool IsShown(uint64_t weight) const;
  // The table has no room for another line after this many.
  bool IsFull(size_t lines) const { return options.max_lines != 0 && lines >= options.max_lines; }
};

// Returns true if an event with this sum has weights and no samples: they are those of the event that it follows
// (SampledEvent::followers).
inline bool IsFollower(const Profile::Sum& event) { return event.samples == 0 && event.weight != 0; }
// The number of samples of a part of an event; "-" for a follower.
std::string SamplesText(const Profile::Sum& event, uint64_t samples);

std::string AccountingSection(const ReportContext& context);
std::string FlatSection(const ReportContext& context);
std::string CallTreeSection(const ReportContext& context);
std::string ThreadSection(const ReportContext& context);
// "" if no sample has a task.
std::string TaskSection(const ReportContext& context);
// "" if the profile has no time off the CPU.
std::string WaitSection(const ReportContext& context);

// "# 12 more functions (min_percent, max_lines)"; "" if nothing was left out. `share`: what they are of the whole, as
// PercentText has it; "" if that says nothing. `options`: those that show more.
std::string LeftOut(size_t rows, std::string_view what, const std::string& share = {},
                    std::string_view options = "min_percent, max_lines");

}  // namespace perfkit::profile
