// The zones of each thread as a list of times at which what is open changes, found by binary search.
#include "src/exporters/open_zones.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace perfkit::exporters {
namespace {

// A begin or an end.
struct Edge {
  uint64_t time_ns = 0;
  uint32_t zone = 0;
  bool is_begin = false;
};

// The edges of each thread's zones, in order of time: ends before begins, and outer zones begin first.
std::vector<std::vector<Edge>> EdgesOf(const Profile& profile) {
  std::vector<std::vector<Edge>> edges(profile.threads.size());
  for (uint32_t i = 0; i < profile.zones.size(); ++i) {
    const ProfileZone& zone = profile.zones[i];
    if (zone.from_ns >= zone.to_ns) continue;
    edges[zone.thread].push_back({zone.from_ns, i, true});
    edges[zone.thread].push_back({zone.to_ns, i, false});
  }
  const auto key = [&](const Edge& edge) {
    return std::tuple(edge.time_ns, edge.is_begin, edge.is_begin ? UINT64_MAX - profile.zones[edge.zone].to_ns : 0,
                      edge.zone);
  };
  for (std::vector<Edge>& of_thread : edges) {
    std::sort(of_thread.begin(), of_thread.end(), [&](const Edge& a, const Edge& b) { return key(a) < key(b); });
  }
  return edges;
}

// "frame 12" is 12, anything else 0.
uint64_t FrameNumber(std::string_view name) {
  constexpr std::string_view kFrame = "frame ";
  uint64_t number = 0;
  if (!name.starts_with(kFrame)) return 0;
  const std::from_chars_result end = std::from_chars(name.data() + kFrame.size(), name.data() + name.size(), number);
  return end.ec == std::errc() && end.ptr == name.data() + name.size() ? number : 0;
}

}  // namespace

OpenZones::OpenZones(const Profile& profile) : changes_(profile.threads.size()) {
  std::map<std::pair<std::string, std::string>, uint32_t> indexes{{{}, 0}};
  const std::vector<std::vector<Edge>> edges = EdgesOf(profile);
  for (size_t thread = 0; thread < edges.size(); ++thread) {
    std::vector<uint32_t> open;
    for (const Edge& edge : edges[thread]) {
      if (edge.is_begin) {
        open.push_back(edge.zone);
      } else {
        open.erase(std::find(open.begin(), open.end(), edge.zone));
      }
      Open together;
      for (const uint32_t i : open) {
        const std::string& name = profile.strings[profile.zones[i].name];
        const bool is_frame = profile.zones[i].is_frame;
        std::string& text = is_frame ? together.frame : together.zone;
        if (!text.empty()) text += is_frame ? ", " : "/";
        text += name;
        if (is_frame && together.frame_number == 0) together.frame_number = FrameNumber(name);
      }
      const auto [entry, is_new] =
          indexes.try_emplace({together.zone, together.frame}, static_cast<uint32_t>(open_.size()));
      if (is_new) open_.push_back(std::move(together));
      changes_[thread].push_back({edge.time_ns, entry->second});
    }
  }
}

uint32_t OpenZones::At(uint32_t thread, uint64_t time_ns) const {
  const std::vector<Change>& changes = changes_[thread];
  const auto after = std::upper_bound(changes.begin(), changes.end(), time_ns,
                                      [](uint64_t at_ns, const Change& change) { return at_ns < change.time_ns; });
  return after == changes.begin() ? 0 : (after - 1)->open;
}

}  // namespace perfkit::exporters
