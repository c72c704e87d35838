// The classes of the library, as far as the rule on their sizes needs them.
#pragma once

#include <map>
#include <set>

#include "tests/tidy/source.h"

namespace perfkit::tidy {

struct ClassShape {
  std::string path;  // Of its definition.
  size_t line = 0;
  size_t data_members = 0;           // Not static. Members of anonymous structs and unions count, bit-fields too.
  bool is_record = true;             // It has no function that changes it: all are const, static or friends.
  std::set<std::string> cc_files{};  // Those that define member functions.
};

// Returns the classes, structs and unions of src/ and include/ by their qualified names: "perfkit::Sampler".
std::map<std::string, ClassShape> Classes(const Tree& tree);

}  // namespace perfkit::tidy
