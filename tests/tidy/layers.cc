// Who may include whom: the floors of docs/design.md.
#include <algorithm>
#include <map>
#include <set>

#include "tests/tidy/rules.h"

namespace perfkit::tidy {
namespace {

// THE table of floors. A room may include rooms on lower floors, never a neighbour on its own.
const std::map<std::string, int, std::less<>> kFloors = {
    {"base", 0},                                       //
    {"sys", 1},     {"ring", 1},      {"elf", 1},      //
    {"event", 2},   {"proc", 2},      {"step", 2},     //
    {"open", 3},    {"unwind", 3},                     //
    {"count", 4},   {"symbolize", 4},                  //
    {"sample", 5},  {"measure", 5},   {"profile", 5},  //
    {"session", 6}, {"exporters", 6}, {"doctor", 6},  {"benchmark", 6}, {"testing", 6},
    {"preload", 7},
};

// Included where every nanosecond of a build or a call counts.
constexpr std::string_view kHotHeaders[] = {"count.h",      "scope.h",       "frame_counter.h",
                                            "event_type.h", "ring_reader.h", "record.h"};

// "src/<room>/..." -> <room>; "" for other paths.
std::string RoomOf(std::string_view path) {
  if (!path.starts_with("src/")) return "";
  path.remove_prefix(4);
  const size_t slash = path.find('/');
  return slash == std::string_view::npos ? "" : std::string(path.substr(0, slash));
}

std::string Unquoted(const Include& include) { return include.what.substr(1, include.what.size() - 2); }

const SourceFile* Find(const Tree& tree, const std::string& path) {
  const auto found = std::find_if(tree.begin(), tree.end(), [&](const auto& file) { return file.path == path; });
  return found == tree.end() ? nullptr : &*found;
}

// The first Abseil header that `file` reaches, "" for none; `chain` gets how.
std::string ReachAbseil(const Tree& tree, const SourceFile& file, std::set<std::string>& seen, std::string& chain) {
  if (!seen.insert(file.path).second) return "";
  for (const Include& include : Includes(file)) {
    const std::string path = Unquoted(include);
    if (path.starts_with("absl/")) return chain = file.path + " -> " + path, path;
    const SourceFile* const next = Find(tree, path.starts_with("src/") ? path : "include/" + path);
    if (next == nullptr) continue;
    const std::string found = ReachAbseil(tree, *next, seen, chain);
    if (!found.empty()) return chain = file.path + " -> " + chain, found;
  }
  return "";
}

}  // namespace

Findings CheckFloors(const Tree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    const std::string room = RoomOf(file.path);
    if (room.empty()) continue;
    const auto floor = kFloors.find(room);
    if (floor == kFloors.end()) findings.push_back({file.path, 1, "src/" + room + " is on no floor"});
    for (const Include& include : Includes(file)) {
      const std::string other = RoomOf(Unquoted(include));
      if (other.empty() || other == room || floor == kFloors.end()) continue;
      const auto other_floor = kFloors.find(other);
      if (other_floor != kFloors.end() && other_floor->second < floor->second) continue;
      findings.push_back({file.path, include.line, room + " may not include " + other + ": not on a lower floor"});
    }
  }
  return findings;
}

Findings CheckPublic(const Tree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    if (!IsIn(file, "include") && !IsIn(file, "examples")) continue;
    for (const Include& include : Includes(file)) {
      const std::string path = Unquoted(include);
      if (path.starts_with("src/") || path.starts_with("tests/")) {
        findings.push_back({file.path, include.line, "includes " + path + ", which users don't have"});
      }
    }
  }
  return findings;
}

Findings CheckHotHeaders(const Tree& tree) {
  Findings findings;
  for (const std::string_view name : kHotHeaders) {
    const SourceFile* const file = Find(tree, "include/perfkit/" + std::string(name));
    if (file == nullptr) continue;  // not written yet
    std::set<std::string> seen;
    std::string chain;
    if (!ReachAbseil(tree, *file, seen, chain).empty()) {
      findings.push_back({file->path, 1, "a hot header must not reach Abseil: " + chain});
    }
  }
  return findings;
}

}  // namespace perfkit::tidy
