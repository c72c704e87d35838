// list: every event that has a name here, by category, and whether it can be used, as `simpleperf list` prints it.
//
//   list                          everything
//   list hw sw                    hardware and software events
//   list --probe tracepoint      opens each tracepoint too, which takes about a minute
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/capabilities.h"
#include "perfkit/format.h"
#include "tool/output.h"

namespace {

using perfkit::EventCategory;
using perfkit::EventInfo;
using perfkit::Usability;

struct Heading {
  EventCategory category;
  const char* key;  // on the command line, as simpleperf spells it
  const char* title;
};

constexpr Heading kHeadings[] = {
    {EventCategory::kHardware, "hw", "hardware events"},
    {EventCategory::kSoftware, "sw", "software events"},
    {EventCategory::kThread, "thread", "events of a thread, without perf"},
    {EventCategory::kCache, "cache", "hw-cache events"},
    {EventCategory::kPmu, "pmu", "pmu events"},
    {EventCategory::kTracepoint, "tracepoint", "tracepoint events"},
    {EventCategory::kRaw, "raw", "raw events provided by the cpu pmu"},
    {EventCategory::kBreakpoint, "mem", "hardware breakpoints"},
    {EventCategory::kUprobe, "uprobe", "probes of user code"},
};

constexpr char kUsage[] =
    "usage: list [--probe] [hw] [sw] [thread] [cache] [pmu] [tracepoint] [raw] [mem] [uprobe]\n"
    "  --probe   also opens and counts each tracepoint, in about a minute\n";

// Returns in a few words whether an event can be used.
std::string Finding(const EventInfo& event) {
  switch (event.usability) {
    case Usability::kCounts: {
      const std::string unit(event.unit);
      return perfkit::FormatNumber(event.value) + (unit.empty() ? "" : " " + unit);
    }
    case Usability::kOpens: return "opened; nothing that was tried must raise it";
    case Usability::kNotTried: return "exists, and may be opened";
    case Usability::kSilent:
    case Usability::kRefused: break;
  }
  return event.cause;
}

std::string LineOf(const EventInfo& event) {
  std::string name(event.name);
  if (!event.alias.empty()) name += " or " + std::string(event.alias);
  return absl::StrFormat("  %-48s %-9s  %s\n", name, UsabilityName(event.usability), Finding(event));
}

// The remedies for the refused events of one category, each once.
class Remedies {
 public:
  void Add(const absl::Status& usable) {
    const std::string_view text(usable.message().data(), usable.message().size());
    const size_t at = text.find("Remedy: ");
    if (at == text.npos) return;
    const std::string remedy(text.substr(at));
    if (std::find(texts_.begin(), texts_.end(), remedy) == texts_.end()) texts_.push_back(remedy);
  }
  void WriteTo(tool::Output& output) {
    for (const std::string& text : texts_) output.Write(text + "\n");
    texts_.clear();
  }

 private:
  std::vector<std::string> texts_;
};

const Heading* Find(const char* key) {
  for (const Heading& heading : kHeadings) {
    if (strcmp(heading.key, key) == 0) return &heading;
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  tool::ReserveStandardStreams();
  std::set<EventCategory> wanted;
  perfkit::ListOptions options;
  for (int i = 1; i < argc; ++i) {
    const Heading* const heading = Find(argv[i]);
    if (heading != nullptr) {
      wanted.insert(heading->category);
    } else if (strcmp(argv[i], "--probe") == 0) {
      options.probe_tracepoints = true;
    } else {
      const bool help = strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0;
      if (help) return tool::PrintText("list", kUsage) ? 0 : 1;
      fprintf(stderr, "list: there is no category '%s'\n%s", argv[i], kUsage);
      return 2;
    }
  }
  options.categories.assign(wanted.begin(), wanted.end());
  options.progress = [](size_t done, size_t all) { fprintf(stderr, "\rtracepoint %zu of %zu ", done + 1, all); };

  tool::Output output("list");
  std::optional<EventCategory> current;
  Remedies remedies;
  perfkit::ListEvents(
      [&](const EventInfo& event) {
        if (current != event.category) {
          remedies.WriteTo(output);
          const char* const title = kHeadings[static_cast<size_t>(event.category)].title;
          output.Write(absl::StrFormat("%sList of %s:\n", current ? "\n" : "", title));
        }
        current = event.category;
        output.Write(LineOf(event));
        remedies.Add(event.usable);
      },
      options);
  remedies.WriteTo(output);
  return output.Finish() ? 0 : 1;
}
