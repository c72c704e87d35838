// Fetches separate debug files from debuginfod servers for a Symbolizer, if the program asks for that.
//
// Component perfkit::dwarf. Pass the function to the Symbolizer:
//   perfkit::Symbolizer symbolizer({.lines = perfkit::DwarfLines, .fetch = perfkit::Debuginfod});
//
// elfutils' client library does the work: libdebuginfod.so.1 (Debian: libdebuginfod1), loaded when the first file is
// needed. It reads the environment variables of debuginfod-find(1): DEBUGINFOD_URLS names the servers, none by
// default; DEBUGINFOD_TIMEOUT is the time in seconds that a server may be silent, 90 by default; DEBUGINFOD_PROGRESS
// shows its progress. It keeps fetched files below ~/.cache/debuginfod_client, or DEBUGINFOD_CACHE_PATH. A program
// that has other rights than its user (AT_SECURE) asks no server.
#pragma once

#include <memory>

#include "perfkit/symbolizer.h"

namespace perfkit {

// For SymbolizerOptions::fetch. Fetches a module's debug file when the first name or line in the module is needed, if
// the module has a build-id, lacks symbols (with SymbolizerOptions::lines: or debug information), and has no separate
// debug file here. The servers learn which builds run here. Without DEBUGINFOD_URLS or the library nothing is fetched;
// SymbolizedModule::lines says why if lines were looked up.
std::unique_ptr<symbolize::DebugFetcher> Debuginfod();

}  // namespace perfkit
