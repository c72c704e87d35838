// The rules of the house (docs/design.md), each a function from the tree to what breaks it.
#pragma once

#include "tests/tidy/source.h"

namespace perfkit::tidy {

// layers.cc: who may include whom.
Findings CheckFloors(const Tree& tree);      // src/<room> includes rooms of lower floors only
Findings CheckPublic(const Tree& tree);      // public headers and examples include nothing of src/
Findings CheckHotHeaders(const Tree& tree);  // the hot headers include no Abseil, however indirectly

// includes.cc: what a build of whole folders would hide.
Findings CheckStandardHeaders(const Tree& tree);  // each name of std has its #include

// calls.cc: what the code of the library may not do.
Findings CheckSystemCalls(const Tree& tree);  // only src/sys calls Linux
Findings CheckLanguage(const Tree& tree);     // no exceptions, no RTTI, no iostream

// shape.cc: sizes and first lines.
Findings CheckLengths(const Tree& tree);      // files, functions, public headers, the root CMakeLists.txt
Findings CheckFirstLines(const Tree& tree);   // every file begins by saying what it is
std::string DescribeShape(const Tree& tree);  // medians and ratios, to read

// words.cc: what may be written nowhere.
Findings CheckWords(const Tree& tree);

// retired_words.cc: what is called otherwise now (vocabulary.h, docs/glossary.md).
Findings CheckVocabulary(const Tree& tree);

// docs.cc: the documents are true.
Findings CheckSnippets(const Tree& tree);  // C++ in documents stands in an example or a test, word for word
Findings CheckLinks(const Tree& tree, const std::string& root);  // relative links lead somewhere

}  // namespace perfkit::tidy
