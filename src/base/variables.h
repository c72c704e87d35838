// Environment variables as settings: their default values, and the process's number in names of files.
#pragma once

#include <filesystem>
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
