// Source lines and inlined calls for a Symbolizer, from debug information (DWARF 2 to 5).
//
// Component perfkit::dwarf: link it to have this function, and hand it to the Symbolizer, which knows no DWARF itself.
//   perfkit::Symbolizer symbolizer({.lines = perfkit::DwarfLines});
//   for (const perfkit::SourceFrame& frame : symbolizer.Inlined(location)) Print(frame.function, frame.file,
//   frame.line);
//
// Also lets the Symbolizer read symbols that are packed in .gnu_debugdata (MiniDebugInfo, as Fedora's files have them).
#pragma once

#include <cstddef>
#include <memory>

#include "perfkit/symbolizer.h"

namespace perfkit {

// What SymbolizerOptions::lines takes. What is decoded of debug information takes at most `cache_bytes`, or as much as
// one unit does where that is more: those that were used least recently are given up, and decoded anew when they are
// asked for. Beside these stay the sections that files have in compressed form, unpacked, and each file path once.
std::unique_ptr<symbolize::LineSource> DwarfLines(size_t cache_bytes);

}  // namespace perfkit
