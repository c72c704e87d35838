// The words that perfkit has retired, each with its replacement; docs/glossary.md explains those.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace perfkit::tidy {

struct Retired {
  enum class Scope : uint8_t {
    kName,      // An identifier, in code, comments and documents; "kFoo*": each longer name that begins with it.
    kCodeName,  // The same in C++ code only: in prose the word is ordinary English.
    kPhrase,    // Words in comments and documents, also across the end of a line.
  };
  Scope scope;
  std::string_view word;
  std::string_view use;
};

std::span<const Retired> RetiredWords();

}  // namespace perfkit::tidy
