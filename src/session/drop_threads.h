// Removes threads from a profile.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "perfkit/profile.h"

namespace perfkit::session {

// Drops the threads for which `is_dropped` is set, with their samples. Returns how many samples that was. A thread that
// holds a lock for which a remaining thread waits stays, too, but without samples.
uint64_t DropThreads(Profile& profile, const std::vector<bool>& is_dropped);

// Which threads of a profile stay.
struct KeptThreads {
  std::span<const uint32_t> unused{};  // indexes that no thread has
  std::span<const uint32_t> listed{};  // only these indexes; empty: all
  std::string name{};                  // a glob pattern for the last name; empty: all
};

// Drops the unused threads, and those that are not kept. If that could be any, a note says how many samples they had.
void KeepThreads(Profile& profile, const KeptThreads& kept);

}  // namespace perfkit::session
