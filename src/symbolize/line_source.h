// The interface between a Symbolizer, which finds files, and the component perfkit::dwarf, which reads debug
// information. The core library does not link that component, so it calls it through this class only.
//
//   Module ── the file's sections ────────> LineSource::Open      once for each module
//          ── address before relocation ──> LineSource::Find      the calls at it, innermost first
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
  base::Bytes bytes;        // Valid as long as the source.
  bool compressed = false;  // SHF_COMPRESSED
};

// One call at an address. Texts are valid as long as the source.
struct SourceCall {
  std::string_view function;  // Mangled if `linkage`; "" if unknown.
  std::string_view file;      // "" if unknown; then line is 0.
  uint32_t line = 0, column = 0;
  bool linkage = false;  // The name is the linkage name, so it is complete.
};

// Not thread-safe.
class LineSource {
 public:
  virtual ~LineSource() = default;

  // Registers the debug information of a module; `module` is any number of the caller's. `shared` are the sections of
  // dwz's shared file, or empty. Reads nothing of them yet. Errors: NotFound if there is no debug information; others
  // if it can't be used.
  virtual absl::Status Open(uint32_t module, const std::vector<DebugSection>& sections,
                            const std::vector<DebugSection>& shared) = 0;

  // Returns OK, or NotFound if a registered module lacks debug information that is in files of its own (split DWARF).
  virtual absl::Status FindGaps(uint32_t module) = 0;

  // Appends the calls at `address` (before relocation) of a registered module to `calls`: innermost first, the function
  // itself last. Appends none if nothing is known.
  virtual void Find(uint32_t module, uint64_t address, std::vector<SourceCall>& calls) = 0;

  // Returns the ELF file that is compressed in .gnu_debugdata.
  virtual absl::StatusOr<std::string> UnpackMini(base::Bytes packed) = 0;
};

}  // namespace perfkit::symbolize
