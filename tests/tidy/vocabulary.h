// The words that perfkit does not use any more, each with the one that it uses: docs/glossary.md has what those mean.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace perfkit::tidy {

struct Retired {
  enum class Scope : uint8_t {
    kName,      // an identifier, in code, comments and documents; "kFoo*": each that begins so and goes on
    kCodeName,  // the same in C++ code alone: in prose it is ordinary English
    kPhrase,    // words in comments and documents, also over the end of a line
  };
  Scope scope;
  std::string_view word;
  std::string_view use;
};

std::span<const Retired> RetiredWords();

}  // namespace perfkit::tidy
