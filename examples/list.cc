// list: every event that can be named here, by category, and whether it can be used: simpleperf list, with reasons.
//
//   list             all of them; events of tracefs are not opened one by one
//   list cache pmu   these categories only
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "perfkit/capabilities.h"

namespace {

struct Heading {
  perfkit::EventCategory category;
  const char* word;
  const char* title;
};

constexpr Heading kHeadings[] = {
    {perfkit::EventCategory::kHardware, "hw", "hardware events"},
    {perfkit::EventCategory::kSoftware, "sw", "software events"},
    {perfkit::EventCategory::kCache, "cache", "cache events"},
    {perfkit::EventCategory::kPmu, "pmu", "events of counter units in sysfs"},
    {perfkit::EventCategory::kTracepoint, "tracepoint", "tracepoints"},
};

const Heading* FindHeading(perfkit::EventCategory category) {
  for (const Heading& heading : kHeadings) {
    if (heading.category == category) return &heading;
  }
  return nullptr;
}

bool IsWanted(const std::vector<std::string>& words, const Heading* heading) {
  if (words.empty()) return true;
  for (const std::string& word : words) {
    if (heading != nullptr && word == heading->word) return true;
  }
  return false;
}

// The cause alone, out of "asked: said (errno 2): cause. Remedy: ..."; the doctor example tells all of it.
std::string Verdict(const perfkit::EventInfo& event) {
  if (event.usable.ok()) return std::string(perfkit::UsabilityName(event.usability));
  std::string reason(event.usable.message());
  reason.resize(std::min(reason.find(". Remedy"), reason.size()));
  if (const size_t said = reason.find("): "); said != std::string::npos) reason.erase(0, said + 3);
  return "no: " + reason;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const Heading* shown = nullptr;
  perfkit::ListEvents([&](const perfkit::EventInfo& event) {
    const Heading* const heading = FindHeading(event.category);
    if (!IsWanted(words, heading)) return;
    if (heading != shown || shown == nullptr) {
      printf("%s%s:\n", shown == nullptr ? "" : "\n", heading == nullptr ? "forms of events" : heading->title);
      shown = heading;
    }
    printf("  %-36s %s\n", std::string(event.name).c_str(), Verdict(event).c_str());
  });
}
