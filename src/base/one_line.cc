// Replaces what would end the line, or what a terminal would obey.
#include "src/base/one_line.h"

#include <algorithm>

#include "src/base/utf8.h"

namespace perfkit::base {
namespace {

// U+0000 to U+001f, U+007f, and U+0080 to U+009f: U+009b begins a control sequence as ESC [ does (ECMA-48).
bool IsControl(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  return byte(0) < ' ' || byte(0) == 0x7f || (byte(0) == 0xc2 && byte(1) < 0xa0);
}

}  // namespace

std::string OneLine(std::string_view name) {
  std::string line;
  line.reserve(name.size());
  while (!name.empty()) {
    const size_t bytes = Utf8Length(name);
    if (bytes == 0) {
      line += '?';
    } else if (IsControl(name)) {
      line += ' ';
    } else {
      line += name.substr(0, bytes);
    }
    name.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return line;
}

}  // namespace perfkit::base
