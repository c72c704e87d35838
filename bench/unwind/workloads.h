// The sampled programs: real ones, as distributions ship them, doing real work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace bench {

struct Workload {
  const char* name;
  // A shell command, run in a folder of its own. It ends by itself, or is ended after enough samples.
  const char* command;
  size_t samples;     // Number of samples to take.
  bool cold = false;  // It is also unwound cold.
  // Most of its frames are those of a JIT compiler, of which there is no information: they are guesses.
  bool guesses = false;
};
std::span<const Workload> Workloads();
// The same programs with dumps of kShortBytes, and of kStackBytes for each kFullEvery-th sample. Short stacks are
// completed from earlier full ones.
std::span<const Workload> StitchedWorkloads();

// Less than the 64 KiB of the largest record. 32 KiB hold most stacks completely.
constexpr uint32_t kStackBytes = 32 << 10;
constexpr uint32_t kShortBytes = 6 << 10, kFullEvery = 16;  // As docs/sampling.md recommends.

// Returns the folder of captures, beside this program.
std::string CaptureFolder();
std::string CapturePath(const Workload& workload);

// Returns the input files of the commands, by name.
struct Input {
  const char* name;
  const char* text;
};
std::span<const Input> Inputs();

}  // namespace bench
