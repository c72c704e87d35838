// Checks the #include lines: between the rooms of src/, from public headers, and of Abseil from hot headers.
#include <algorithm>
#include <set>

#include "tests/tidy/floors.h"
#include "tests/tidy/rules.h"

namespace perfkit::tidy {
namespace {

// Headers of hot paths: a Status in one of them would cost each includer more than a second of compile time.
constexpr std::string_view kHotHeaders[] = {"annotations.h", "count.h", "event_type.h", "frame_counter.h", "optick.h",
                                            "record.h",      "scope.h", "tracy.h",      "ring_reader.h"};

// Returns true for the files that the table of floors has rooms for.
bool HasRoom(std::string_view path) {
  constexpr std::string_view kSource = "src/";
  return (path.starts_with(kSource) && path.find('/', kSource.size()) != std::string_view::npos) ||
         path.starts_with("include/perfkit/") || path.starts_with("perfkit/");
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
    if (!HasRoom(file.path)) continue;
    const Room* const room = RoomOfFile(file.path);
    if (room == nullptr) {
      findings.push_back({file.path, 1, "is on no floor: tests/tidy/floors.cc"});
      continue;
    }
    for (const Include& include : Includes(file)) {
      const std::string path = Unquoted(include);
      if (!HasRoom(path)) continue;
      const Room* const other = RoomOfFile(path);
      if (other == room || (other != nullptr && other->floor < room->floor)) continue;
      findings.push_back(
          {file.path, include.line, std::string(room->name) + " may not include " + path + ": not on a lower floor"});
    }
  }
  return findings;
}

Findings CheckPublic(const Tree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    if (!IsIn(file, "include") && !IsIn(file, "examples")) continue;
    bool is_first = true;
    for (const Include& include : Includes(file)) {
      const std::string path = Unquoted(include);
      if (path.starts_with("src/") || path.starts_with("tests/")) {
        findings.push_back({file.path, include.line, "includes " + path + ", which users don't have"});
      }
      if (path == "perfkit/detail/library_only.h" && !is_first) {
        findings.push_back({file.path, include.line, "must be the first: others may be missing, and it says why"});
      }
      is_first = false;
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
