// Environment variables as settings: their default values, and the process's number in names of files.
#pragma once

#include <strings.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "absl/functional/function_ref.h"

namespace perfkit::base {

// Returns the value of the variable `name`, by a function such as getenv; `usual` if it is not set, or empty. The view
// is valid as long as the variable's value and `usual` are.
inline std::string_view VariableOr(absl::FunctionRef<const char*(const char*)> variable, const char* name,
                                   std::string_view usual) {
  const char* const value = variable(name);
  return value != nullptr && *value != '\0' ? std::string_view(value) : usual;
}

// Returns what the value of a switch says: true for 1, true, yes and on, false for nothing, 0, false, no and off, in
// upper or lower case; nullopt for any other word. `value` may be nullptr, as getenv returns it.
inline std::optional<bool> YesOrNo(const char* value) {
  constexpr std::array kYes = {"1", "true", "yes", "on"};
  constexpr std::array kNo = {"", "0", "false", "no", "off"};
  const auto is_word = [&](const char* known) { return strcasecmp(value, known) == 0; };
  if (value == nullptr || std::any_of(kNo.begin(), kNo.end(), is_word)) return false;
  if (std::any_of(kYes.begin(), kYes.end(), is_word)) return true;
  return std::nullopt;
}

// Replaces the first "%p" in `path` by `pid`. Returns false if there is none.
inline bool ExpandPid(std::string& path, int pid) {
  const size_t at = path.find("%p");
  if (at == std::string::npos) return false;
  path.replace(at, 2, std::to_string(pid));
  return true;
}

// Makes `path` absolute unless it is empty: the program, or one that replaces it by exec, may change its working
// directory. Leaves it as it is if that has no path.
inline void MakeAbsolute(std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (!error && !path.empty()) path = absolute.string();
}

}  // namespace perfkit::base
