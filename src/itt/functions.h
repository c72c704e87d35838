// Connects a program's copy of ittnotify to the collector's functions.
#pragma once

#include <span>

#include "absl/status/status.h"
#include "src/itt/abi.h"

namespace perfkit::itt {

// A function of the collector, by its name in the interface.
struct Function {
  const char* name;  // "__itt_task_begin"
  void* address;
};

// Stores `functions` in the list of `global`, and the null functions for all that are not among them or not of
// `groups`. On an error, changes nothing. Errors: InvalidArgument if `global` is not what abi.h describes.
absl::Status Connect(Global* global, int groups, std::span<const Function> functions);

}  // namespace perfkit::itt
