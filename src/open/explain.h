// Finds out why the kernel refused to open an event, and a remedy.
#pragma once

#include "absl/status/status.h"
#include "src/open/open_event.h"

namespace perfkit::open {

// A refusal: the kernel's answers to the request itself and to OpenEvent's last attempt.
struct Refusal {
  const OpenRequest& request;
  const sys::PerfEventAttr& attr;  // Of the last attempt.
  int first_error;
  int error;  // Of the last attempt.
};

// Returns a sys::PerfError. Its remedy was tried if this process can try it: with it, the kernel opens the event (which
// is closed at once). If no single change helps, returns the text of the errno.
absl::Status Explain(const Refusal& refusal, const sys::Rights& rights);

}  // namespace perfkit::open
