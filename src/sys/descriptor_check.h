// Notices that the program has closed perfkit's descriptors.
//
// Daemons close all descriptors, also those that they have not opened (closefrom). The files that such a program opens
// next get the numbers of perfkit's descriptors: a system call of perfkit would then act on the program's file.
#pragma once

#include <sys/stat.h>

#include "absl/status/statusor.h"
#include "src/sys/fd.h"
#include "src/sys/fork_registry.h"

namespace perfkit::sys {

// Holds two descriptors of one pipe: the first and the last that perfkit opens at the start of the program. Nothing
// else is the same file. Thread-safe. Must not be destroyed once the check fails.
class DescriptorCheck {
 public:
  // Opens the first descriptor. To be called before perfkit opens others. Errors: by errno.
  static absl::StatusOr<OwnedFd> OpenFirst();
  // Opens the last descriptor. To be called after perfkit has opened the others.
  explicit DescriptorCheck(OwnedFd first);

  // Returns whether the descriptors are still perfkit's.
  bool passes() const;

 private:
  bool IsPipe(const OwnedFd& fd) const;
  static void OnForkedChild(void* check);

  OwnedFd first_, last_;
  struct stat pipe_ {};
  // Declared last. Registered after the session's listeners, and so called before them.
  ForkListener fork_listener_{OnForkedChild, this};
};

}  // namespace perfkit::sys
