// Loads libperfkit_itt.so into this process, and has ittnotify load the same.
#pragma once

#include "absl/status/status.h"
#include "src/itt/forward.h"

namespace perfkit::itt {

// Loads `path`; if that is nullptr, what INTEL_LIBITTNOTIFY64 names, or what the dynamic linker finds. Calls its
// perfkit_itt_forward with `forward`, which must live until the process ends. If INTEL_LIBITTNOTIFY64 is not set, or is
// empty, sets it and PERFKIT_ITT_FORWARD_ONLY: no other thread may use the environment meanwhile. Errors: as
// IttCollection::Start. On an error, the environment is as before.
absl::Status ForwardTo(const Forward& forward, const char* path);

}  // namespace perfkit::itt
