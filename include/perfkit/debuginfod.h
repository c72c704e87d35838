// Separate debug files from debuginfod servers, for a Symbolizer: only where a program switches it on.
//
// Component perfkit::dwarf: link it to have this function, and hand it to the Symbolizer.
//   perfkit::Symbolizer symbolizer({.lines = perfkit::DwarfLines, .fetch = perfkit::Debuginfod});
//
// elfutils' client library does the work, and is looked for when the first file is asked for: libdebuginfod.so.1
// (Debian: libdebuginfod1). It goes by the variables of debuginfod-find(1): DEBUGINFOD_URLS names the servers, none by
// default; DEBUGINFOD_TIMEOUT is how long one may be silent, 90 s; DEBUGINFOD_PROGRESS shows what it is at. What it has
// fetched it keeps below ~/.cache/debuginfod_client, or DEBUGINFOD_CACHE_PATH.
#pragma once

#include <memory>

#include "perfkit/symbolizer.h"

namespace perfkit {

// What SymbolizerOptions::fetch takes. Fetches a module's debug file when the first name or line in it is asked for,
// where the module has a build-id, lacks symbols or debug information, and no file below debug_root has them. The
// servers learn which builds run here.
std::unique_ptr<symbolize::DebugFetcher> Debuginfod();

}  // namespace perfkit
