// A handful of words, by hand.
#include "options.h"

#include <charconv>
#include <string_view>

namespace game {
namespace {

constexpr int kMaxFrames = 1'000'000;

bool ParseFrames(std::string_view text, int* frames) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *frames);
  return error == std::errc() && end == text.data() + text.size() && *frames >= 1 && *frames <= kMaxFrames;
}

}  // namespace

bool ParseOptions(int argc, char** argv, Options* options, std::string* error) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--help") {
      options->help = true;
    } else if (word == "--hitches") {
      options->hitches = true;
    } else if (word == "--no-picture") {
      options->picture.clear();
    } else if (word == "--picture" && has_value) {
      options->picture = argv[++i];
    } else if (word == "--no-profile") {
      options->profile.clear();
    } else if (word == "--profile" && has_value) {
      options->profile = argv[++i];
    } else if (word == "--frames" && has_value) {
      if (ParseFrames(argv[++i], &options->frames)) continue;
      *error = std::string("--frames wants a number from 1 to 1000000, not '") + argv[i] + "'";
      return false;
    } else {
      *error = "unknown option, or one without its value: '" + std::string(word) + "'";
      return false;
    }
  }
  return true;
}

}  // namespace game
