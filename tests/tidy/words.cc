// Checks for words that must not be written: notes to oneself, paths of one machine, a name with two meanings.
#include <regex>

#include "tests/tidy/rules.h"

namespace perfkit::tidy {
namespace {

struct Word {
  std::regex what;
  const char* why;
  bool code_only;  // In C++ code only; otherwise also in comments, documents and scripts.
};

// Each pattern is split, so that this file does not match itself.
const std::vector<Word>& Words() {
  static const std::vector<Word> words = {
      {std::regex("\\b(TO"
                  "DO|FIX"
                  "ME|XX"
                  "X|HA"
                  "CK)\\b"),
       "a note to oneself: do it, or file it", false},
      {std::regex("(/wo"
                  "rk/|/tmp/w"
                  "t\\b|/ro"
                  "ot/)"),
       "a path of one machine", false},
      {std::regex("\\b(?:class|struct|enum|using|typedef .*)\\s+(Fra"
                  "me)\\b"),
       "a StackFrame is a call, a FrameCounter counts rendered frames: which is this?", true},
  };
  return words;
}

}  // namespace

Findings CheckWords(const Tree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    const std::string code = IsCpp(file) ? CodeOnly(file.text) : "";
    for (const Word& word : Words()) {
      const std::string& text = word.code_only ? code : file.text;
      for (std::sregex_iterator match(text.begin(), text.end(), word.what), end; match != end; ++match) {
        const size_t line = LineAt(text, static_cast<size_t>(match->position()));
        findings.push_back({file.path, line, (*match)[1].str() + " is " + word.why});
      }
    }
  }
  return findings;
}

}  // namespace perfkit::tidy
