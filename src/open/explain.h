// Why the kernel refused to open an event, and what would help.
#pragma once

#include "absl/status/status.h"
#include "src/open/open_event.h"

namespace perfkit::open {

// How an open ended: what the kernel said to the request itself, and to the last attempt of the retry ladder.
struct Refusal {
  const OpenRequest& request;
  const sys::PerfEventAttr& attr;  // of the last attempt
  int first_error;
  int error;  // of the last attempt
};

// Returns a sys::PerfError whose remedy was tried wherever this process can try it: with it, the kernel opens the
// event (which is closed at once). Where no single change helps, the text is that of the errno.
absl::Status Explain(const Refusal& refusal, const sys::Rights& rights);

}  // namespace perfkit::open
