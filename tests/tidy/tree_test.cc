// Checks the tree by all rules. With PERFKIT_UPDATE_DOCS in the environment, first draws the floors again.
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/tidy/floors.h"
#include "tests/tidy/rules.h"

namespace perfkit::tidy {
namespace {

const std::string& Root() {
  static const std::string root = PERFKIT_TEST_DATA "/..";
  return root;
}

const Tree& House() {
  static const Tree tree = LoadTree(Root());
  return tree;
}

void Expect(const Findings& findings) {
  for (const Finding& finding : findings) {
    FAIL_CHECK(finding.path << ":" << finding.line << ": " << finding.message);
  }
  SUCCEED();
}

TEST_CASE("the tree was read", "[tidy]") {
  size_t public_headers = 0, sources = 0;
  for (const SourceFile& file : House()) {
    public_headers += IsIn(file, "include/perfkit");
    sources += IsIn(file, "src") && file.path.ends_with(".cc");
  }
  CHECK(public_headers >= 10);
  CHECK(sources >= 30);
}

TEST_CASE("docs/design.md draws the floors", "[tidy][floors]") {
  if (std::getenv("PERFKIT_UPDATE_DOCS") != nullptr) {
    for (const SourceFile& file : LoadTree(Root())) {
      if (file.path == "docs/design.md") std::ofstream(Root() + "/" + file.path) << WithDrawing(file.text);
    }
  }
  Expect(CheckDrawing(LoadTree(Root())));
}

TEST_CASE("floors", "[tidy]") { Expect(CheckFloors(House())); }
TEST_CASE("components", "[tidy]") { Expect(CheckComponents(House())); }
TEST_CASE("public headers and examples", "[tidy]") { Expect(CheckPublic(House())); }
TEST_CASE("hot headers", "[tidy]") { Expect(CheckHotHeaders(House())); }
TEST_CASE("standard headers", "[tidy]") { Expect(CheckStandardHeaders(House())); }
TEST_CASE("system calls", "[tidy]") { Expect(CheckSystemCalls(House())); }
TEST_CASE("language", "[tidy]") { Expect(CheckLanguage(House())); }
TEST_CASE("classes", "[tidy]") { Expect(CheckClasses(House())); }
TEST_CASE("first lines", "[tidy]") { Expect(CheckFirstLines(House())); }
TEST_CASE("kinds of tests", "[tidy]") { Expect(CheckKinds(House())); }
TEST_CASE("words", "[tidy]") { Expect(CheckWords(House())); }
TEST_CASE("vocabulary", "[tidy]") { Expect(CheckVocabulary(House())); }
TEST_CASE("white space", "[tidy]") { Expect(CheckWhiteSpace(House())); }
TEST_CASE("file names", "[tidy]") { Expect(CheckFileNames(House())); }
TEST_CASE("tests of each room", "[tidy]") { Expect(CheckRoomTests(House())); }
TEST_CASE("snippets", "[tidy]") { Expect(CheckSnippets(House())); }
TEST_CASE("links", "[tidy]") { Expect(CheckLinks(House(), Root())); }

TEST_CASE("lengths", "[tidy]") {
  Expect(CheckLengths(House()));
  std::fputs(DescribeShape(House()).c_str(), stdout);
}

}  // namespace
}  // namespace perfkit::tidy
