// What a walk over modules knows of its processes.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "tests/symbolize/walk_actor.h"
#include "tests/symbolize/walk_case.h"

namespace perfkit::walk {

inline constexpr long kLongestTickNs = 10'000'000;  // CONFIG_HZ=100

// The builds in the files of a folder, as the processes of one mount namespace see it.
using Files = std::array<std::optional<size_t>, kFiles>;

// What is known of a process.
struct Known {
  pid_t pid = 0;  // 0: there is none.
  size_t parent = 0;
  size_t files = 0;  // Its index in the list of Files.
  std::array<std::optional<size_t>, kLibraries> loaded;
  std::array<std::optional<size_t>, kSlots> jit;
  std::array<bool, kSlots> inherited{};  // By a fork of which there is no record: only the parent has listed it.
};

// Whether this process may have containers: an ordinary user may not, nor may root in some containers.
inline bool MayMount(const std::string& folder) {
  const pid_t child = fork();
  if (child == 0) _exit(OwnFileSystem(folder) ? 0 : 1);
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace perfkit::walk
