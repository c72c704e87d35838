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

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// The first `columns` characters of `text`.
std::string_view Head(std::string_view text, size_t columns) {
  size_t bytes = 0;
  while (bytes < text.size() && (columns > 0 || IsContinuation(text[bytes]))) {
    columns -= IsContinuation(text[bytes]) ? 0 : 1;
    ++bytes;
  }
  return text.substr(0, bytes);
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

size_t Columns(std::string_view text) {
  return text.size() - static_cast<size_t>(std::count_if(text.begin(), text.end(), IsContinuation));
}

std::string CutMiddle(std::string_view text, size_t columns) {
  constexpr size_t kDots = 3;
  const size_t has = Columns(text);
  if (has <= columns) return std::string(text);
  if (columns <= kDots) return std::string(Head(text, columns));
  const size_t tail = (columns - kDots) / 2, head = columns - kDots - tail;
  return std::string(Head(text, head)) + "..." + std::string(text.substr(Head(text, has - tail).size()));
}

}  // namespace perfkit::base
