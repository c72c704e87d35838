// A strict reader of JSON, so that a report that is not JSON (NaN, a missing comma) fails a test without any tool.
//
// Flattens: {"a": [{"b": 1}]} becomes {"a/0/b": "1"}. Strings keep their escapes.
#pragma once

#include <cctype>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace perfkit::testing {

class JsonReader {
 public:
  using Leaves = std::map<std::string, std::string>;

  // Nothing when `text` is not one JSON value and blanks.
  static std::optional<Leaves> Read(std::string_view text) {
    JsonReader reader(text);
    if (!reader.Value("", 0)) return std::nullopt;
    reader.Blanks();
    return reader.rest_.empty() ? std::optional(reader.leaves_) : std::nullopt;
  }

 private:
  explicit JsonReader(std::string_view text) : rest_(text) {}

  void Blanks() {
    const size_t first = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(first == std::string_view::npos ? rest_.size() : first);
  }
  bool Take(std::string_view token) {
    Blanks();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  size_t Digits(size_t at) const {
    while (at < rest_.size() && std::isdigit(static_cast<unsigned char>(rest_[at])) != 0) ++at;
    return at;
  }
  bool Leaf(const std::string& path, size_t size) {
    leaves_[path] = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }
  bool Number(const std::string& path) {
    const size_t begin = rest_.starts_with('-') ? 1 : 0;
    size_t at = Digits(begin);
    if (at == begin) return false;
    if (at < rest_.size() && rest_[at] == '.') at = Digits(at + 1);
    if (at < rest_.size() && (rest_[at] == 'e' || rest_[at] == 'E')) {
      ++at;
      if (at < rest_.size() && (rest_[at] == '+' || rest_[at] == '-')) ++at;
      const size_t exponent = at;
      at = Digits(at);
      if (at == exponent) return false;
    }
    return Leaf(path, at);
  }
  std::optional<std::string> Text() {
    if (!Take("\"")) return std::nullopt;
    for (size_t i = 0; i < rest_.size() && static_cast<unsigned char>(rest_[i]) >= 0x20; ++i) {
      if (rest_[i] == '\\') {
        ++i;
      } else if (rest_[i] == '"') {
        const std::string text(rest_.substr(0, i));
        rest_.remove_prefix(i + 1);
        return text;
      }
    }
    return std::nullopt;
  }
  bool Object(const std::string& path, int depth) {
    if (Take("}")) return true;
    do {
      const std::optional<std::string> key = Text();
      if (!key || !Take(":") || !Value(path + (path.empty() ? "" : "/") + *key, depth)) return false;
    } while (Take(","));
    return Take("}");
  }
  bool Array(const std::string& path, int depth) {
    if (Take("]")) return true;
    size_t i = 0;
    do {
      if (!Value(path + '/' + std::to_string(i++), depth)) return false;
    } while (Take(","));
    return Take("]");
  }
  bool Value(const std::string& path, int depth) {
    if (depth > 16) return false;
    if (Take("{")) return Object(path, depth + 1);
    if (Take("[")) return Array(path, depth + 1);
    for (const char* word : {"true", "false", "null"}) {
      if (Take(word)) return leaves_[path] = word, true;
    }
    Blanks();
    if (!rest_.starts_with('"')) return Number(path);
    const std::optional<std::string> text = Text();
    if (text) leaves_[path] = *text;
    return text.has_value();
  }

  std::string_view rest_;
  Leaves leaves_;
};

}  // namespace perfkit::testing
