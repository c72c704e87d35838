// Which texts are patterns.
#include "src/base/glob.h"

#include <fnmatch.h>

#include <catch2/catch.hpp>
#include <string>

namespace perfkit::base {
namespace {

TEST_CASE("patterns have closed brackets and whole escapes", "[base][glob]") {
  for (const std::string pattern : {"", "*", "worker-?", "[ab]*", "[!ab]", "[^ab]", "[]]", "[!]]", "[[:alpha:]]",
                                    "[a\\]b]", "[[]", "\\[", "a]", "[a-c][d]", "[[.-.]x]", "\\\\", "[[:x]"}) {
    INFO(pattern);
    CHECK(IsGlob(pattern));
  }
  for (const std::string pattern :
       {"[", "[,", "a[", "[]", "[!]", "[ab]c[", "[a\\]", "\\", "a\\", "[\\", "[[:alpha:]", "\\\\\\"}) {
    INFO(pattern);
    CHECK_FALSE(IsGlob(pattern));
  }
}

// A bracket that fnmatch reads as an expression is one character of the text.
TEST_CASE("fnmatch agrees where a bracket ends", "[base][glob]") {
  CHECK(fnmatch("[]]x", "]x", 0) == 0);
  CHECK(fnmatch("[a\\]b]x", "]x", 0) == 0);
  CHECK(fnmatch("[[:alpha:]]x", "qx", 0) == 0);
  CHECK(fnmatch("[[]x", "[x", 0) == 0);
  CHECK(fnmatch("[!]]x", "ax", 0) == 0);
  CHECK(fnmatch("[,", "[,", 0) == 0);  // literally, which is hardly what was meant
}

}  // namespace
}  // namespace perfkit::base
