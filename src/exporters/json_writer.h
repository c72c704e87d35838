// Writes JSON piece by piece (RFC 8259). Nothing is kept but whether the next value needs a comma: a file of any size
// takes no memory.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

#include "src/base/utf8.h"
#include "src/profile/sink_buffer.h"

namespace perfkit::exporters {

// Sets the commas; the caller pairs Begin with End, and gives each member of an object its Key. The text is valid UTF-8
// whatever the strings hold: a byte that belongs to no character becomes U+FFFD. It holds no "<" and no line separator
// of Unicode's, so that it may stand inside a script of HTML. Errors are the SinkBuffer's. Not thread-safe.
class JsonWriter {
 public:
  explicit JsonWriter(profile::SinkBuffer& out) : out_(out) {}

  JsonWriter& BeginObject() { return Begin("{"); }
  JsonWriter& EndObject() { return End("}"); }
  JsonWriter& BeginArray() { return Begin("["); }
  JsonWriter& EndArray() { return End("]"); }

  // The name of the member whose value comes next.
  JsonWriter& Key(std::string_view name) {
    String(name);
    out_.Add(":");
    comma_ = false;
    return *this;
  }

  JsonWriter& String(std::string_view text) {
    Comma();
    out_.Add("\"");
    while (!text.empty()) {
      // What needs no escape is handed on as one piece.
      size_t plain = 0;
      while (plain < text.size() && IsPlain(text[plain])) ++plain;
      out_.Add(text.substr(0, plain));
      text.remove_prefix(plain);
      if (!text.empty()) text.remove_prefix(Escape(text));
    }
    out_.Add("\"");
    return *this;
  }

  // Integers are exact, whatever a reader makes of them; a double that is no number is null.
  template <class Number>
  requires std::integral<Number> || std::floating_point<Number> JsonWriter& Value(Number number) {
    if constexpr (std::same_as<Number, bool>) {
      return Literal(number ? "true" : "false");
    } else {
      if (!std::isfinite(static_cast<double>(number))) return Null();
      char digits[32];
      const std::to_chars_result end = std::to_chars(digits, digits + sizeof(digits), number);
      return Literal({digits, static_cast<size_t>(end.ptr - digits)});
    }
  }

  JsonWriter& Null() { return Literal("null"); }

  // Key and value.
  template <class Number>
  requires std::integral<Number> || std::floating_point<Number> JsonWriter& Member(std::string_view name,
                                                                                   Number number) {
    return Key(name).Value(number);
  }
  JsonWriter& Member(std::string_view name, std::string_view text) { return Key(name).String(text); }
  JsonWriter& Member(std::string_view name, const char* text) { return Key(name).String(text); }

  bool failed() const { return out_.failed(); }

 private:
  static bool IsPlain(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\' && c != '<';
  }

  // Writes the character that `text` begins with. Returns its length.
  size_t Escape(std::string_view text) {
    const size_t length = base::Utf8Length(text);
    if (length == 0) {
      out_.Add("\xef\xbf\xbd");  // U+FFFD
      return 1;
    }
    const bool line_separator = text.starts_with("\xe2\x80\xa8") || text.starts_with("\xe2\x80\xa9");
    if (line_separator) {
      out_.Add(text[2] == '\xa8' ? "\\u2028" : "\\u2029");
    } else if (length > 1) {
      out_.Add(text.substr(0, length));
    } else if (text[0] == '"' || text[0] == '\\') {
      const char escaped[] = {'\\', text[0]};
      out_.Add(std::string_view(escaped, 2));
    } else {
      constexpr char kHex[] = "0123456789abcdef";
      const char escaped[] = {'\\', 'u', '0', '0', kHex[text[0] >> 4 & 0xf], kHex[text[0] & 0xf]};
      out_.Add(std::string_view(escaped, sizeof(escaped)));
    }
    return length;
  }

  JsonWriter& Literal(std::string_view text) {
    Comma();
    out_.Add(text);
    return *this;
  }

  JsonWriter& Begin(std::string_view bracket) {
    Literal(bracket);
    comma_ = false;
    return *this;
  }

  JsonWriter& End(std::string_view bracket) {
    out_.Add(bracket);
    comma_ = true;
    return *this;
  }

  // Before each value: a comma, unless it is the first of its array or object, or follows its key.
  void Comma() {
    if (comma_) out_.Add(",");
    comma_ = true;
  }

  profile::SinkBuffer& out_;
  bool comma_ = false;
};

// Writes a member: an array with `value(entry)` for each entry of a table.
template <class Table, class Value>
void Column(JsonWriter& json, std::string_view name, const Table& table, Value&& value) {
  json.Key(name).BeginArray();
  for (const auto& entry : table) json.Value(value(entry));
  json.EndArray();
}

}  // namespace perfkit::exporters
