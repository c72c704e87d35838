// What reads source lines and inlined calls: the door between the core, which finds files, and the component that knows
// DWARF. Only headers and bytes pass it, since a shared core shows nothing else.
//
//   Module ── sections, as the file has them ──> LineSource::Open      once a module
//          ── address before relocation ───────> LineSource::Find      the calls there, innermost first
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "src/base/cursor.h"

namespace perfkit::symbolize {

// One section of a file with debug information.
struct DebugSection {
  std::string_view name;
  base::Bytes bytes;        // as long-lived as the source
  bool compressed = false;  // SHF_COMPRESSED
};

// A call, as debug information has it. Views live as long as the source.
struct SourceCall {
  std::string_view function;  // mangled where `linkage`; "" when nobody says
  std::string_view file;      // "" when nobody says, as line 0
  uint32_t line = 0, column = 0;
  bool linkage = false;  // the name is that of the symbol table, and so the whole one
};

// For one thread at a time.
class LineSource {
 public:
  virtual ~LineSource() = default;

  // Module `module`, a number of the caller's, has this debug information, and with dwz `shared` is what it has in
  // common with other modules. Reads nothing of it yet. NotFound when there is none in it, another error when it cannot
  // be used.
  virtual absl::Status Open(uint32_t module, const std::vector<DebugSection>& sections,
                            const std::vector<DebugSection>& shared) = 0;

  // The calls at `address` of a module that was opened: the innermost first, the real function last. None when nothing
  // is known there.
  virtual void Find(uint32_t module, uint64_t address, std::vector<SourceCall>& calls) = 0;

  // The ELF file that is packed in .gnu_debugdata.
  virtual absl::StatusOr<std::string> UnpackMini(base::Bytes packed) = 0;
};

}  // namespace perfkit::symbolize
