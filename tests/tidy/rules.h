// The rules of the project (docs/design.md, CONTRIBUTING.md), each a function from the tree to what breaks it.
#pragma once

#include "tests/tidy/source.h"

namespace perfkit::tidy {

// layers.cc: #include lines, by the table of floors.h.
Findings CheckFloors(const Tree& tree);  // a room and its public headers include those of lower floors only
// Public headers and examples include nothing of src/, and library_only.h before all others.
Findings CheckPublic(const Tree& tree);
Findings CheckHotHeaders(const Tree& tree);  // the hot headers include no Abseil, not even indirectly

// components.cc: the lists of CMakeLists.txt.
Findings CheckComponents(const Tree& tree);  // the core includes nothing of a component

// includes.cc: errors that a build of whole folders would hide.
Findings CheckStandardHeaders(const Tree& tree);  // each name of std has its #include

// calls.cc: calls and language features that the library must not use.
Findings CheckSystemCalls(const Tree& tree);  // only src/sys calls Linux
Findings CheckLanguage(const Tree& tree);     // no exceptions, no RTTI, no iostream

// shape.cc: sizes, first lines and white space.
Findings CheckLengths(const Tree& tree);      // files, functions, public headers, the root CMakeLists.txt
Findings CheckFirstLines(const Tree& tree);   // each file begins with a comment that says what it is
Findings CheckWhiteSpace(const Tree& tree);   // as .editorconfig: no blanks at the ends of lines, a newline at the end
std::string DescribeShape(const Tree& tree);  // medians and ratios, for readers of the test's output

// classes.cc: at most 20 data members and two .cc files for each class.
Findings CheckClasses(const Tree& tree);

// kinds.cc: test cases that have to do with time are laws or measurements, and say so.
Findings CheckKinds(const Tree& tree);

// words.cc: words that are written nowhere.
Findings CheckWords(const Tree& tree);

// retired_words.cc: words that have a replacement (vocabulary.h, docs/glossary.md).
Findings CheckVocabulary(const Tree& tree);

// docs.cc: documents agree with the code.
bool IsDocument(const SourceFile& file);    // README.md and its neighbours, docs/*.md
Findings CheckSnippets(const Tree& tree);   // C++ in documents stands in an example or in tests/compile
Findings CheckDrawing(const Tree& tree);    // docs/design.md draws the floors as floors.cc has them
Findings CheckRoomTests(const Tree& tree);  // docs/design.md has a row for each room, and names its test programs
Findings CheckLinks(const Tree& tree, const std::string& root);  // relative links lead somewhere

// file_names.cc: files that comments and documents name exist.
Findings CheckFileNames(const Tree& tree);

}  // namespace perfkit::tidy
