// Checks that the core does without its components, which a program may lack: no file of the core includes a header of
// a component, and no component one of another. The lists are those of CMake: SOURCES and HEADERS of each
// perfkit_component in CMakeLists.txt, and PERFKIT_COMPONENT_FOLDERS in cmake/CoreSources.cmake.
#include <map>
#include <regex>

#include "tests/tidy/rules.h"

namespace perfkit::tidy {
namespace {

// From folders ("src/unwind/dwarf/") and headers ("perfkit/unwinder.h") to the component.
using Owners = std::map<std::string, std::string, std::less<>>;

std::vector<std::string> WordsOf(const std::string& text) {
  static const std::regex kWord(R"([^\s()]+)");
  std::vector<std::string> words;
  for (std::sregex_iterator word(text.begin(), text.end(), kWord), end; word != end; ++word) {
    words.push_back(word->str());
  }
  return words;
}

void AddFolders(const std::string& text, Owners& owners) {
  static const std::regex kFolders(R"(set\(PERFKIT_COMPONENT_FOLDERS ([^)]*)\))");
  std::smatch match;
  if (!std::regex_search(text, match, kFolders)) return;
  for (const std::string& folder : WordsOf(match[1].str())) owners.try_emplace("src/" + folder + "/", folder);
}

void AddComponents(const std::string& text, Owners& owners) {
  static const std::regex kComponent(R"((?:^|\n)perfkit_component\(([^)]*)\))");
  for (std::sregex_iterator call(text.begin(), text.end(), kComponent), end; call != end; ++call) {
    const std::vector<std::string> words = WordsOf((*call)[1].str());
    std::string list;
    for (const std::string& word : words) {
      if (word == "FOUND" || word == "SOURCES" || word == "LIBRARIES" || word == "HEADERS") {
        list = word;
      } else if (list == "SOURCES") {
        owners[word + "/"] = words[0];
      } else if (list == "HEADERS") {
        owners["perfkit/" + word] = words[0];
      }
    }
  }
}

// Returns the component of a file, or "" for the core.
std::string OwnerOf(const Owners& owners, std::string_view path) {
  if (path.starts_with("include/")) path.remove_prefix(std::string_view("include/").size());
  std::string owner;
  size_t longest = 0;
  for (const auto& [begin, component] : owners) {
    if (!path.starts_with(begin) || begin.size() <= longest) continue;
    longest = begin.size();
    owner = component;
  }
  return owner;
}

}  // namespace

Findings CheckComponents(const Tree& tree) {
  Owners owners;
  for (const SourceFile& file : tree) {
    if (file.path == "CMakeLists.txt") AddComponents(file.text, owners);
    if (file.path == "cmake/CoreSources.cmake") AddFolders(file.text, owners);
  }
  Findings findings;
  for (const SourceFile& file : tree) {
    if (!IsCpp(file) || !(IsIn(file, "src") || IsIn(file, "include"))) continue;
    const std::string owner = OwnerOf(owners, file.path);
    for (const Include& include : Includes(file)) {
      const std::string path = include.what.substr(1, include.what.size() - 2);
      const std::string other = OwnerOf(owners, path);
      if (other.empty() || other == owner) continue;
      findings.push_back({file.path, include.line, path + " belongs to " + other + ", which a program may lack"});
    }
  }
  return findings;
}

}  // namespace perfkit::tidy
