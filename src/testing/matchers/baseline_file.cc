// Reads three levels of JSON objects with numbers, and writes them sorted by name, so that an update changes only the
// lines of its own numbers. The reader accepts what the writer makes, with any white space and JSON's escapes of ASCII,
// and no more of JSON. A file that it does not accept is an error with a line, never an empty baseline. So is a name
// that is there twice, as after a merge that kept both sides: which number holds is not for the reader to say.
#include "src/testing/matchers/baseline_file.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/str_format.h"
#include "src/measure/services.h"

namespace perfkit::matchers {
namespace {

// Reads the text once, with each step bounded by the remaining bytes.
class Reader {
 public:
  explicit Reader(std::string_view text) : all_(text), left_(text) {}

  // The depth is that of the callbacks, so no input can nest deeper than three levels.
  // Reads {"key": value, ...}; `value(key)` reads the text after the colon.
  template <class Value>
  bool Object(Value value) {
    if (!Take('{')) return false;
    if (Take('}')) return true;
    do {
      std::string key;
      if (!String(key) || !Take(':') || !value(key)) return false;
    } while (Take(','));
    return Take('}');
  }

  bool Number(int64_t& out) {
    SkipBlanks();
    const auto [stop, error] = std::from_chars(left_.data(), left_.data() + left_.size(), out);
    if (error != std::errc{}) return false;
    left_.remove_prefix(static_cast<size_t>(stop - left_.data()));
    return true;
  }

  bool AtEnd() {
    SkipBlanks();
    return left_.empty();
  }

  int line() const {
    int line = 1;
    for (const char c : all_.substr(0, all_.size() - left_.size())) line += c == '\n';
    return line;
  }

 private:
  void SkipBlanks() { left_.remove_prefix(std::min(left_.find_first_not_of(" \t\r\n"), left_.size())); }

  bool Take(char c) {
    SkipBlanks();
    if (left_.empty() || left_.front() != c) return false;
    left_.remove_prefix(1);
    return true;
  }

  bool String(std::string& out) {
    if (!Take('"')) return false;
    while (!left_.empty()) {
      char c = left_.front();
      if (static_cast<unsigned char>(c) < ' ') return false;
      left_.remove_prefix(1);
      if (c == '"') return true;
      if (c == '\\' && !Escaped(c)) return false;
      out += c;
    }
    return false;
  }

  // Reads what follows a backslash.
  bool Escaped(char& out) {
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    if (left_.empty()) return false;
    const char letter = left_.front();
    left_.remove_prefix(1);
    if (letter == 'u') return Code(out);
    const size_t i = kLetters.find(letter);
    if (i == kLetters.npos) return false;
    out = kMeanings[i];
    return true;
  }

  // Reads the four digits of \u0009. The writer escapes ASCII only.
  bool Code(char& out) {
    constexpr size_t kDigits = 4;
    unsigned code = 0;
    if (left_.size() < kDigits) return false;
    const char* const end = left_.data() + kDigits;
    if (std::from_chars(left_.data(), end, code, 16).ptr != end || code >= 0x80) return false;
    out = static_cast<char>(code);
    left_.remove_prefix(kDigits);
    return true;
  }

  std::string_view all_, left_;
};

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ') {
      absl::StrAppendFormat(&quoted, "\\u%04x", static_cast<unsigned>(c));
      continue;
    }
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

absl::Status WrongText(const Reader& reader, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrFormat("line %d: %s", reader.line(), what));
}

// Returns the reader's error with the file's name in front.
absl::StatusOr<Baselines> ParseNamed(const std::string& path, const std::string& text) {
  absl::StatusOr<Baselines> baselines = ParseBaselines(text);
  if (baselines.ok()) return baselines;
  return absl::Status(baselines.status().code(), absl::StrFormat("%s: %s", path, baselines.status().message()));
}

}  // namespace

absl::StatusOr<Baselines> ParseBaselines(std::string_view text) {
  Baselines baselines;
  Reader reader(text);
  if (reader.AtEnd()) return baselines;
  std::string twice;
  // Returns the new value of `key` in a map; nullptr if the map has one.
  const auto add = [&](auto& into, const std::string& key) {
    const auto [at, is_new] = into.try_emplace(key);
    if (!is_new) twice = Quoted(key);
    return is_new ? &at->second : nullptr;
  };
  // One callback for each level, the innermost first.
  const auto backend = [&](ByBackend& into) {
    return [&](const std::string& key) {
      int64_t* const number = add(into, key);
      return number != nullptr && reader.Number(*number);
    };
  };
  const auto event = [&](ByEvent& into) {
    return [&](const std::string& key) {
      ByBackend* const numbers = add(into, key);
      return numbers != nullptr && reader.Object(backend(*numbers));
    };
  };
  const bool fine = reader.Object([&](const std::string& key) {
    ByEvent* const entry = add(baselines, key);
    return entry != nullptr && reader.Object(event(*entry));
  });
  if (fine && reader.AtEnd()) return baselines;
  if (!twice.empty()) return WrongText(reader, twice + " is there twice. Remedy: keep the one that holds");
  return WrongText(reader, "not a baseline file; expected {\"name\": {\"event\": {\"backend\": number}}}");
}

std::string FormatBaselines(const Baselines& baselines) {
  std::string text = "{";
  for (const auto& [name, events] : baselines) {
    absl::StrAppendFormat(&text, "%s\n  %s: {", text.size() == 1 ? "" : ",", Quoted(name));
    for (auto event = events.begin(); event != events.end(); ++event) {
      absl::StrAppendFormat(&text, "%s\n    %s: {", event == events.begin() ? "" : ",", Quoted(event->first));
      for (auto number = event->second.begin(); number != event->second.end(); ++number) {
        absl::StrAppendFormat(&text, "%s%s: %d", number == event->second.begin() ? "" : ", ", Quoted(number->first),
                              number->second);
      }
      text += "}";
    }
    text += "\n  }";
  }
  return text + "\n}\n";
}

absl::StatusOr<Baselines> ReadBaselines(const std::string& path) {
  const absl::StatusOr<std::string> text = detail::ReadTextFile(path);
  if (absl::IsNotFound(text.status())) return Baselines{};
  if (!text.ok()) return text.status();
  return ParseNamed(path, *text);
}

absl::Status UpdateBaseline(const std::string& path, const std::string& name, const ByEvent& entry) {
  // The text is that of now, under the lock: other tests may have written entries since this program began.
  return detail::EditTextFile(path, [&](const std::string& text) -> absl::StatusOr<std::string> {
    absl::StatusOr<Baselines> baselines = ParseNamed(path, text);
    if (!baselines.ok()) return baselines.status();  // A file that can't be read is not overwritten.
    for (const auto& [event, numbers] : entry) {
      for (const auto& [backend, number] : numbers) (*baselines)[name][event][backend] = number;
    }
    return FormatBaselines(*baselines);
  });
}

}  // namespace perfkit::matchers
