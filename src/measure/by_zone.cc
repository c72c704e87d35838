// Runs a region as one frame of a FrameCounter, so that a message can say which of its zones cost how much. It runs
// after the measurement and not within it: open zones would add to what is measured.
#include "src/measure/by_zone.h"

#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/format.h"
#include "src/count/frame/frame_counter_impl.h"

namespace perfkit::measure {
namespace {

// Returns "12", "3,400 ns" or "0.0125 Joules".
std::string AmountText(const count::EventPlan& plan, size_t i, uint64_t value) {
  const double scale = plan.scale(i);
  std::string text =
      scale == 1 ? FormatNumber(value) : absl::StrFormat("%.4g", scale * static_cast<double>(value));
  if (!plan.unit(i).empty()) absl::StrAppendFormat(&text, " %s", plan.unit(i));
  return text;
}

// Returns "    parse: page-faults 12, task-clock 3,400 ns", indented by the depth of the zone. Measure counts user space
// only: an event that the zones count in the kernel, too, says so.
std::string Line(const FrameCounter& zones, const ZoneStats& zone) {
  const count::EventPlan& plan = count::FrameCounterImpl::Of(zones)->plan();
  std::string line(2 * (zone.depth + 1), ' ');
  line += (zone.name.empty() ? "the region" : zone.name) + ":";
  const char* separator = " ";
  for (size_t i = 0; i < zones.size(); ++i) {
    const bool missing = (zone.last.missing >> i & 1) != 0 || zone.total[i].coverage() < 1;
    absl::StrAppendFormat(&line, "%s%s %s%s", separator, zones.name(i),
                          missing ? "n/a" : AmountText(plan, i, zone.last.values[i]),
                          !missing && plan.counts_kernel(i) ? " (with the kernel)" : "");
    separator = ", ";
  }
  return line;
}

}  // namespace

std::string CostByZone(FrameCounter& zones, const detail::Region& region) {
  const bool was_on = zones.enabled();
  zones.SetEnabled(true);
  region.call(region.self);  // Attaches this thread, and defines the zones.
  zones.Mark();
  const uint64_t before = zones.last().number;
  if (!*region.threw) region.call(region.self);
  zones.Mark();
  const uint64_t frame = zones.last().number;
  const std::vector<ZoneStats> all = zones.zones();
  zones.SetEnabled(was_on);
  if (frame > before + 1) return "  n/a: the region itself marks frames of this FrameCounter";
  std::string text;
  for (const ZoneStats& zone : all) {
    // A zone whose last frame is an older one was not in this run. Rows with a thread's name are those of other
    // threads.
    if (zone.thread.empty() && zone.last.number == frame) text += (text.empty() ? "" : "\n") + Line(zones, zone);
  }
  return text;
}

}  // namespace perfkit::measure
