// Source lines and inlined calls for a Symbolizer, from debug information (DWARF 2 to 5).
//
// Component perfkit::dwarf. Pass the function to the Symbolizer, which has no DWARF reader itself:
//   perfkit::Symbolizer symbolizer({.lines = perfkit::DwarfLines});
//   for (const perfkit::SourceFrame& frame : symbolizer.Inlined(location)) Print(frame.file, frame.line);
//
// The Symbolizer then also reads symbols that are packed in .gnu_debugdata (MiniDebugInfo, as in Fedora's files).
// Files of split debug information (.dwo, .dwp) are not read: for such code lines are known, but no inlined calls, and
// SymbolizedModule::lines says so.
#pragma once

#include <cstddef>
#include <memory>

#include "perfkit/symbolizer.h"

namespace perfkit {

// For SymbolizerOptions::lines. Decoded debug information takes at most `cache_bytes`, or the size of one compilation
// unit if that is more: the least recently used units are dropped, and decoded again when they are needed. In addition,
// the contents of compressed sections and each file path stay in memory.
std::unique_ptr<symbolize::LineSource> DwarfLines(size_t cache_bytes);

}  // namespace perfkit
