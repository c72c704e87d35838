// What the command lines of stat and record share: numbers, lists of numbers, and the targets that they name.
#pragma once

#include <perfkit/target.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tool {

// Returns false unless `text` is a finite number of at least `min`.
template <class T>
bool ParseNumber(std::string_view text, T min, T* out) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *out);
  return error == std::errc() && stop == end && *out >= min && *out - *out == T{};
}

// A duration in seconds, from a millisecond to eleven days. Returns false for anything else.
bool ParseSeconds(std::string_view text, std::optional<double>* out);

// Appends the numbers of "1,2,3". Returns false for anything else.
bool ParseIds(std::string_view list, std::vector<int>* out);
// The same, for CPUs: also "0-3".
bool ParseCpus(std::string_view list, std::vector<int>* out);

// The targets that the options name.
struct TargetNames {
  bool whole_system = false;   // -a
  std::vector<int> cpus;       // --cpu
  std::vector<int> processes;  // -p
  std::vector<int> threads;    // -t

  bool has_cpus() const { return whole_system || !cpus.empty(); }
  bool empty() const { return !has_cpus() && processes.empty() && threads.empty(); }
};

// Targets that do not overlap, so that their counts add up and no sample comes twice: a CPU, a process or a thread that
// is named twice is one target; a thread of a process that is also named is left out. CPUs restrict -a. Reads /proc.
// Errors: InvalidArgument if both CPUs and tasks are named, or task 0.
absl::StatusOr<std::vector<perfkit::Target>> MakeTargets(const TargetNames& names, bool inherit);

}  // namespace tool
