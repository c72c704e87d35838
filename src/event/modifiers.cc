// Parses modifiers by one table: a letter and the flag that it sets.
#include "src/event/modifiers.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "src/event/parse_error.h"

namespace perfkit::event {
namespace {

struct Letter {
  char letter;
  bool Modifiers::*flag;
};

constexpr Letter kLetters[] = {
    {'u', &Modifiers::user},        {'k', &Modifiers::kernel},    {'h', &Modifiers::hypervisor},
    {'G', &Modifiers::guest},       {'H', &Modifiers::host},      {'I', &Modifiers::not_idle},
    {'P', &Modifiers::precise_max}, {'D', &Modifiers::pinned},    {'S', &Modifiers::sample_read},
    {'W', &Modifiers::weak},        {'e', &Modifiers::exclusive},
};
constexpr int kMaxPrecise = 3;
constexpr char kAll[] = "modifiers are u k h G H I p pp ppp P D S W e";

// 'p' is not in the table, because it may be repeated.
const Letter* Find(char letter) {
  for (const Letter& known : kLetters) {
    if (known.letter == letter) return &known;
  }
  return nullptr;
}

// 'b' is perf's letter for counting with BPF programs; all other letters are mistakes.
absl::Status Unknown(std::string_view whole, std::string_view letter) {
  if (letter == "b") return WrongAt(whole, letter, "modifier 'b' counts with BPF programs, which perfkit does not do");
  return WrongAt(whole, letter, absl::StrFormat("'%s' is no modifier; %s", Printable(letter), kAll));
}

// At most three, in the event's and the group's letters together.
absl::Status AddPrecise(std::string_view whole, std::string_view letter, Modifiers& modifiers) {
  if (modifiers.precise_max) return WrongAt(whole, letter, "'p' beside 'P': P already asks for the most precise");
  if (++modifiers.precise > kMaxPrecise) return WrongAt(whole, letter, "more than three 'p': ppp is the most precise");
  return absl::OkStatus();
}

}  // namespace

void Modifiers::ApplyTo(EventConfig& config) const {
  config.privilege_given = user || kernel || hypervisor;
  config.exclude_user = config.privilege_given && !user;
  config.exclude_kernel = config.privilege_given && !kernel;
  config.exclude_hv = config.privilege_given && !hypervisor;
  const bool context_given = guest || host;
  config.exclude_host = context_given && !host;
  config.exclude_guest = context_given ? !guest : user || precise > 0;
  config.exclude_idle = not_idle;
  config.pinned = pinned;
  config.exclusive = exclusive;
  config.sample_read = sample_read;
  config.weak_group = weak;
  config.precise = static_cast<uint8_t>(precise);
  config.precise_max = precise_max;
}

// Distinguishes "cylces:u" (a wrong event) from "shed:sched_switch" (a wrong tracepoint).
bool LooksLikeModifiers(std::string_view letters) {
  const auto known = [](char c) { return c == 'p' || c == 'b' || Find(c) != nullptr; };
  return !letters.empty() && std::all_of(letters.begin(), letters.end(), known);
}

absl::Status AddModifiers(std::string_view whole, std::string_view letters, Modifiers& modifiers) {
  if (letters.empty()) return WrongAt(whole, letters, absl::StrFormat("nothing after the ':'; %s", kAll));
  for (size_t i = 0; i < letters.size(); ++i) {
    const std::string_view letter = letters.substr(i, 1);
    if (letter == "p") {
      if (absl::Status added = AddPrecise(whole, letter, modifiers); !added.ok()) return added;
      continue;
    }
    const Letter* const known = Find(letter[0]);
    if (known == nullptr) return Unknown(whole, letter);
    if (letters.substr(0, i).find(letter) != std::string_view::npos) {
      return WrongAt(whole, letter, absl::StrFormat("modifier '%s' is written twice", letter));
    }
    if (letter == "P" && modifiers.precise > 0) {
      return WrongAt(whole, letter, "'P' beside 'p': P already asks for the most precise");
    }
    modifiers.*known->flag = true;
  }
  return absl::OkStatus();
}

}  // namespace perfkit::event
