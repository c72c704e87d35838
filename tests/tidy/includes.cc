// Checks that each name of std comes from a header that is included, directly or by one of the project's headers.
// Builds with precompiled headers, and with whole folders in one file, hide that one is missing.
#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

#include "tests/tidy/rules.h"

namespace perfkit::tidy {
namespace {

// The name after "std::", and the header that declares it. <memory> and <string> include most of each other in
// libstdc++, but not elsewhere.
const std::map<std::string, std::string, std::less<>> kHeaderOf = {
    {"string", "string"},
    {"to_string", "string"},
    {"string_view", "string_view"},
    {"vector", "vector"},
    {"array", "array"},
    {"span", "span"},
    {"map", "map"},
    {"set", "set"},
    {"deque", "deque"},
    {"optional", "optional"},
    {"nullopt", "optional"},
    {"variant", "variant"},
    {"unique_ptr", "memory"},
    {"make_unique", "memory"},
    {"shared_ptr", "memory"},
    {"make_shared", "memory"},
    {"atomic", "atomic"},
    {"atomic_ref", "atomic"},
    {"sort", "algorithm"},
    {"min", "algorithm"},
    {"max", "algorithm"},
    {"find_if", "algorithm"},
    {"lower_bound", "algorithm"},
    {"upper_bound", "algorithm"},
    {"exchange", "utility"},
    {"pair", "utility"},
    {"tuple", "tuple"},
    {"function", "functional"},
    {"numeric_limits", "limits"},
    {"thread", "thread"},
    {"mutex", "mutex"},
    {"bit_cast", "bit"},
    {"from_chars", "charconv"},
    {"accumulate", "numeric"},
    {"byte", "cstddef"},
    {"chrono", "chrono"},
    {"unordered_map", "unordered_map"},
};

using ByPath = std::map<std::string_view, const SourceFile*>;

// Adds the standard headers that `file` reaches through the project's headers.
void Reach(const ByPath& files, const SourceFile& file, std::set<std::string_view>& seen,
           std::set<std::string>& reached) {
  if (!seen.insert(file.path).second) return;
  for (const Include& include : Includes(file)) {
    const std::string path = include.what.substr(1, include.what.size() - 2);
    auto ours = files.find(path);
    if (ours == files.end()) ours = files.find("include/" + path);
    if (ours != files.end()) {
      Reach(files, *ours->second, seen, reached);
    } else {
      reached.insert(path);
    }
  }
}

}  // namespace

Findings CheckStandardHeaders(const Tree& tree) {
  ByPath files;
  for (const SourceFile& file : tree) files[file.path] = &file;
  Findings findings;
  for (const SourceFile& file : tree) {
    if (!IsCpp(file) || !(IsIn(file, "src") || IsIn(file, "include"))) continue;
    std::set<std::string_view> seen;
    std::set<std::string> reached;
    Reach(files, file, seen, reached);
    const std::string code = CodeOnly(file.text);
    for (size_t at = 0; (at = code.find("std::", at)) != std::string::npos;) {
      at += 5;
      const auto end = std::find_if(code.begin() + static_cast<ptrdiff_t>(at), code.end(), [](char c) {
        return !(('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || c == '_');
      });
      const std::string name(code.begin() + static_cast<ptrdiff_t>(at), end);
      const auto header = kHeaderOf.find(name);
      if (header == kHeaderOf.end() || !reached.insert(header->second).second) continue;
      findings.push_back({file.path, LineAt(code, at), "std::" + name + " needs #include <" + header->second + ">"});
    }
  }
  return findings;
}

}  // namespace perfkit::tidy
