// The zones of each thread as a list of times at which what is open changes, found by binary search.
#include "src/exporters/open_zones.h"

#include <algorithm>
#include <charconv>
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

// The edges of zones of one thread, in order of time: ends before begins, and outer zones begin first.
std::vector<Edge> EdgesOf(const Profile& profile, const std::vector<uint32_t>& zones) {
  std::vector<Edge> edges;
  edges.reserve(2 * zones.size());
  for (const uint32_t i : zones) {
    const ProfileZone& zone = profile.zones[i];
    if (zone.from_ns >= zone.to_ns) continue;
    edges.push_back({zone.from_ns, i, true});
    edges.push_back({zone.to_ns, i, false});
  }
  const auto key = [&](const Edge& edge) {
    return std::tuple(edge.time_ns, edge.is_begin, edge.is_begin ? UINT64_MAX - profile.zones[edge.zone].to_ns : 0,
                      edge.zone);
  };
  std::sort(edges.begin(), edges.end(), [&](const Edge& a, const Edge& b) { return key(a) < key(b); });
  return edges;
}

// "frame 12" is 12, anything else nullopt.
std::optional<uint64_t> NumberOf(std::string_view name) {
  constexpr std::string_view kFrame = "frame ";
  uint64_t number = 0;
  if (!name.starts_with(kFrame)) return std::nullopt;
  const std::from_chars_result end = std::from_chars(name.data() + kFrame.size(), name.data() + name.size(), number);
  const bool is_number = end.ec == std::errc() && end.ptr == name.data() + name.size();
  return is_number ? std::optional(number) : std::nullopt;
}

}  // namespace

OpenZones::OpenZones(const Profile& profile) : profile_(profile), changes_(profile.threads.size()) {
  std::vector<std::vector<uint32_t>> zones(profile.threads.size());
  for (uint32_t i = 0; i < profile.zones.size(); ++i) zones[profile.zones[i].thread].push_back(i);
  for (size_t thread = 0; thread < zones.size(); ++thread) changes_[thread] = ChangesOf(zones[thread]);
  numbers_.clear();
}

std::vector<OpenZones::Change> OpenZones::ChangesOf(const std::vector<uint32_t>& zones) {
  const std::vector<Edge> edges = EdgesOf(profile_, zones);
  std::vector<Change> changes;
  changes.reserve(edges.size());
  std::vector<uint32_t> open;
  for (const Edge& edge : edges) {
    if (edge.is_begin) {
      open.push_back(edge.zone);
    } else {
      open.erase(std::find(open.begin(), open.end(), edge.zone));
    }
    changes.push_back({edge.time_ns, Together(open)});
  }
  return changes;
}

OpenZones::Open OpenZones::Together(const std::vector<uint32_t>& zones) {
  Open together;
  const auto add = [this](uint32_t& path, uint32_t name) {
    const auto [entry, is_new] = numbers_.try_emplace({path, name}, static_cast<uint32_t>(paths_.size()));
    if (is_new) paths_.push_back(entry->first);
    path = entry->second;
  };
  for (size_t i = 0; i < std::min(zones.size(), kMaxTogether); ++i) {
    const ProfileZone& zone = profile_.zones[zones[i]];
    add(zone.is_frame ? together.frames : together.zones, zone.name);
  }
  if (zones.size() > kMaxTogether) add(together.zones, kMore);
  return together;
}

OpenZones::Open OpenZones::At(uint32_t thread, uint64_t time_ns) const {
  const std::vector<Change>& changes = changes_[thread];
  const auto after = std::upper_bound(changes.begin(), changes.end(), time_ns,
                                      [](uint64_t at_ns, const Change& change) { return at_ns < change.time_ns; });
  return after == changes.begin() ? Open() : (after - 1)->open;
}

std::vector<uint32_t> OpenZones::NamesOf(uint32_t path) const {
  std::vector<uint32_t> names;
  for (; path != 0; path = paths_[path].within) names.push_back(paths_[path].name);
  std::ranges::reverse(names);
  return names;
}

std::string_view OpenZones::NameOf(uint32_t name) const {
  return name == kMore ? std::string_view("(more)") : profile_.strings[name];
}

std::string OpenZones::Text(uint32_t path, const char* separator) const {
  std::string text;
  for (const uint32_t name : NamesOf(path)) {
    if (!text.empty()) text += separator;
    text += NameOf(name);
  }
  return text;
}

std::optional<uint64_t> OpenZones::FrameNumber(Open open) const {
  std::optional<uint64_t> number;
  for (const uint32_t name : NamesOf(open.frames)) {
    if (!number) number = NumberOf(NameOf(name));
  }
  return number;
}

}  // namespace perfkit::exporters
