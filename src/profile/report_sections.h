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

// The number of samples of a part of an event; "-" for a follower, whose samples are those of another event
// (SampledEvent::followers).
std::string SamplesText(const Profile::Sum& event, uint64_t samples);
// "100.0 ms in 100 samples", of a whole event.
std::string SumText(const Profile::Sum& event, ProfileUnit unit);

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
