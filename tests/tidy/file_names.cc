// Checks that each file of the project exists that a comment or document names. A name without a folder may be that of
// any file; a path must be the end of a file's path. Names in quotes are examples. Files of other projects are
// recognised by their folders.
#include <algorithm>
#include <regex>
#include <set>
#include <string>

#include "tests/tidy/rules.h"

namespace perfkit::tidy {
namespace {

// Folders of other projects and of the kernel's tree.
constexpr std::string_view kForeignFolders[] = {
    "absl/",          "arch/",         "asm/",   "benchmark/", "catch2/", "docs-developer/", "include/elf/",
    "include/linux/", "include/uapi/", "linux/", "sanitizer/", "sys/",    "system/",         "tools/"};
// Other projects' files, and those that CMake makes.
constexpr std::string_view kForeignFiles[] = {"elf.h", "fenv_private.h", "perf_event.h", "perfkitConfig.cmake",
                                              "zlib.h"};

bool IsForeign(std::string_view name) {
  return std::any_of(std::begin(kForeignFolders), std::end(kForeignFolders),
                     [&](auto folder) { return name.starts_with(folder); }) ||
         std::find(std::begin(kForeignFiles), std::end(kForeignFiles), name) != std::end(kForeignFiles);
}

// Returns the text that may name files: the comments, for documents all of it.
std::string ProseOf(const SourceFile& file) {
  if (IsCpp(file)) return CommentsOnly(file.text);
  if (file.path.ends_with(".md")) return file.text;
  std::string comments = file.text;
  bool quiet = true;
  for (char& c : comments) {
    if (c == '\n') quiet = true;
    if (c == '#') quiet = false;
    if (quiet && c != '\n') c = ' ';
  }
  return comments;
}

// Returns each path of the tree, and each of its ends after a slash.
std::set<std::string, std::less<>> EndsOfPaths(const Tree& tree) {
  std::set<std::string, std::less<>> ends;
  for (const SourceFile& file : tree) {
    ends.insert(file.path);
    for (size_t slash = file.path.find('/'); slash != std::string::npos; slash = file.path.find('/', slash + 1)) {
      ends.insert(file.path.substr(slash + 1));
    }
  }
  return ends;
}

}  // namespace

Findings CheckFileNames(const Tree& tree) {
  static const std::regex kFileName(R"re((^|[^\w./<*~%$>}\"-])((?:[\w-]+/)*[\w-]+\.(?:cc|h|cmake|md))(?![\w/]))re");
  const std::set<std::string, std::less<>> ends = EndsOfPaths(tree);
  Findings findings;
  for (const SourceFile& file : tree) {
    const std::string prose = ProseOf(file);
    for (std::sregex_iterator match(prose.begin(), prose.end(), kFileName), end; match != end; ++match) {
      const std::string name = (*match)[2].str();
      if (ends.contains(name) || IsForeign(name)) continue;
      findings.push_back({file.path, LineAt(prose, static_cast<size_t>(match->position(2))), "no such file: " + name});
    }
  }
  return findings;
}

}  // namespace perfkit::tidy
