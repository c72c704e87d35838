// The programs that are sampled: real ones, as distributions ship them, at real work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace bench {

struct Workload {
  const char* name;
  const char* command;  // of a shell, in a folder of its own; ends of itself, or is ended when there are samples enough
  size_t samples;       // that are taken
  bool cold = false;    // whether it is also unwound from nothing
};
std::span<const Workload> Workloads();
// The same programs, of whose stacks kShortBytes are copied, and kStackBytes each kFullEvery-th time: what is outside
// of a short one is completed by what earlier ones had there.
std::span<const Workload> StitchedWorkloads();

// Below the 64 KiB that a record may have: 32 KiB hold most stacks whole, and a record of them fits.
constexpr uint32_t kStackBytes = 32 << 10;
constexpr uint32_t kShortBytes = 6 << 10, kFullEvery = 16;  // what docs/sampling.md advises

// Where this program keeps captures: in a folder beside it.
std::string CaptureFolder();
std::string CapturePath(const Workload& workload);

// What the commands read, by name.
struct Input {
  const char* name;
  const char* text;
};
std::span<const Input> Inputs();

}  // namespace bench
