// What each zone of a frame allocates and reads: events that perf does not have. Links perfkit::testing_alloc.
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "perfkit/frame_counter.h"
#include "perfkit/metric.h"

namespace {

std::string Load(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

}  // namespace

int main() {
  perfkit::FrameCounter frames({.events = {"allocations", "allocated-bytes", "syscall-read-bytes"}});
  frames.Mark();
  std::string text;
  {
    PERFKIT_ZONE(frames, "load");
    text = Load("/proc/self/maps");
  }
  {
    PERFKIT_ZONE(frames, "split");
    Split(text);
  }
  frames.Mark();

  const auto mean = perfkit::Metric::Parse("allocated-bytes / allocations [bytes]");
  if (!mean.ok()) return fprintf(stderr, "%s\n", mean.status().ToString().c_str()), 1;
  fputs(frames.FormatZones(std::array{*mean}).c_str(), stdout);
}
