// Checks the #include lines: between the rooms of src/, from public headers, and of Abseil from hot headers.
#include <algorithm>
#include <set>

#include "tests/tidy/floors.h"
#include "tests/tidy/rules.h"

namespace perfkit::tidy {
namespace {

// Headers of hot paths: a Status in one of them would cost each includer more than a second of compile time.
constexpr std::string_view kHotHeaders[] = {"count.h",      "scope.h",       "frame_counter.h",
                                            "event_type.h", "ring_reader.h", "record.h"};

// Returns <room> of "src/<room>/..."; "" for other paths.
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

// Returns the first Abseil header that `file` reaches, or "". `chain` becomes the chain of includes that leads there.
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
    const std::string name = RoomOf(file.path);
    if (name.empty()) continue;
    const Room* const room = FindRoom(name);
    if (room == nullptr) findings.push_back({file.path, 1, "src/" + name + " is on no floor: tests/tidy/floors.cc"});
    for (const Include& include : Includes(file)) {
      const std::string other_name = RoomOf(Unquoted(include));
      if (other_name.empty() || other_name == name || room == nullptr) continue;
      const Room* const other = FindRoom(other_name);
      if (other != nullptr && other->floor < room->floor) continue;
      findings.push_back({file.path, include.line, name + " may not include " + other_name + ": not on a lower floor"});
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
    if (file == nullptr) continue;  // Trees of tests lack it.
    std::set<std::string> seen;
    std::string chain;
    if (!ReachAbseil(tree, *file, seen, chain).empty()) {
      findings.push_back({file->path, 1, "a hot header must not reach Abseil: " + chain});
    }
  }
  return findings;
}

}  // namespace perfkit::tidy
