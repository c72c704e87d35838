// Composes the messages of parsers.
#include "src/event/parse_error.h"

#include <functional>

#include "absl/strings/str_format.h"

namespace perfkit::event {
namespace {

constexpr size_t kLongestPrinted = 100;
constexpr size_t kLongestMessage = 1500;

// Returns at most `most` bytes of `text`, on one line.
std::string Escaped(std::string_view text, size_t most) {
  std::string escaped;
  for (const char c : text.substr(0, most)) {
    if (c >= ' ' && c <= '~') {
      escaped += c;
    } else {
      escaped += absl::StrFormat("\\x%02x", static_cast<unsigned char>(c));
    }
  }
  if (text.size() > most) escaped += "...";
  return escaped;
}

// Returns the position of `piece` in `whole`, from 1; 0 if `piece` is not inside `whole`.
size_t Position(std::string_view whole, std::string_view piece) {
  const std::less_equal<const char*> not_after;  // A total order even for unrelated objects.
  const char* const at = piece.data();
  const bool inside = at != nullptr && not_after(whole.data(), at) && not_after(at, whole.data() + whole.size());
  return inside ? static_cast<size_t>(at - whole.data()) + 1 : 0;
}

}  // namespace

std::string Printable(std::string_view text) { return Escaped(text, kLongestPrinted); }

// All parsers' errors have one form.
absl::Status ErrorAt(absl::StatusCode code, std::string_view whole, std::string_view piece, const std::string& wrong) {
  const size_t position = Position(whole, piece);
  // `wrong` may quote paths and contents of files, which may have any bytes.
  const std::string place = position > 1 ? absl::StrFormat(", character %d", position) : "";
  return absl::Status(code,
                      absl::StrFormat("event '%s'%s: %s", Printable(whole), place, Escaped(wrong, kLongestMessage)));
}

absl::Status WrongAt(std::string_view whole, std::string_view piece, const std::string& wrong) {
  return ErrorAt(absl::StatusCode::kInvalidArgument, whole, piece, wrong);
}

absl::Status MissingAt(std::string_view whole, std::string_view piece, const std::string& wrong) {
  return ErrorAt(absl::StatusCode::kNotFound, whole, piece, wrong);
}

}  // namespace perfkit::event
