// Tells Rust's two forms apart, and demangles the older one: a C++ name with a hash at its end, and with escapes for
// characters that C++ names can't have. "_ZN3foo17h0123456789abcdefE" is also what C++ would make of foo::h0123...; no
// C++ program has such names, hence the hash decides.
#include "src/symbolize/rust_demangle.h"

#include <charconv>

#include "src/base/number.h"
#include "src/symbolize/rust_v0.h"

namespace perfkit::symbolize {
namespace {

struct Escape {
  std::string_view code, text;
};
// The escapes of rustc, compiler/rustc_symbol_mangling/src/legacy.rs.
constexpr Escape kEscapes[] = {{"SP", "@"}, {"BP", "*"}, {"RF", "&"}, {"LT", "<"},
                               {"GT", ">"}, {"LP", "("}, {"RP", ")"}, {"C", ","}};

// Returns "<" for "$LT$" and "{" for "$u7b$"; nullopt for an unknown escape.
std::optional<std::string> Unescaped(std::string_view code) {
  for (const Escape& escape : kEscapes) {
    if (escape.code == code) return std::string(escape.text);
  }
  if (!code.starts_with('u')) return std::nullopt;
  const std::optional<uint32_t> letter = base::ParseNumber<uint32_t>(code.substr(1), 16);
  if (!letter || *letter < 0x20 || *letter >= 0x7f) return std::nullopt;
  return std::string(1, static_cast<char>(*letter));
}

bool AppendReadable(std::string_view part, std::string& out) {
  // An identifier can't begin with '$', so rustc puts '_' before it.
  if (part.starts_with("_$")) part.remove_prefix(1);
  while (!part.empty()) {
    // rustc writes "::" within a part as "..", because ':' is not allowed there.
    if (part.starts_with("..")) {
      out += "::";
      part.remove_prefix(2);
    } else if (part.front() == '$') {
      const size_t end = part.find('$', 1);
      const std::optional<std::string> text = Unescaped(part.substr(1, end == part.npos ? 0 : end - 1));
      if (!text) return false;
      out += *text;
      part.remove_prefix(end + 1);
    } else {
      out += part.front();
      part.remove_prefix(1);
    }
  }
  return true;
}

bool IsHash(std::string_view part) {
  return part.size() == 17 && part.front() == 'h' && part.find_first_not_of("0123456789abcdef", 1) == part.npos;
}

// The form is "_ZN", then length and name of each part, then "17h" and 16 digits, then "E".
std::optional<std::string> DemangleLegacy(std::string_view name) {
  name.remove_prefix(3);
  std::string out;
  while (true) {
    size_t size = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), size);
    if (error != std::errc()) return std::nullopt;
    name.remove_prefix(static_cast<size_t>(end - name.data()));
    if (size == 0 || size >= name.size()) return std::nullopt;
    const std::string_view part = name.substr(0, size);
    name.remove_prefix(size);
    if (name.front() == 'E') {  // A C++ function would have parameters after it.
      const bool rust = name.size() == 1 && IsHash(part) && !out.empty();
      return rust ? std::optional(std::move(out)) : std::nullopt;
    }
    if (!out.empty()) out += "::";
    if (!AppendReadable(part, out)) return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> DemangleRust(std::string_view name) {
  name = name.substr(0, name.find(".llvm."));
  if (name.starts_with("_ZN") && name.find("17h") != name.npos) return DemangleLegacy(name);
  if (name.starts_with("_R")) return RustV0(name.substr(2)).Demangle();
  return std::nullopt;
}

}  // namespace perfkit::symbolize
