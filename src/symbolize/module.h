// A module, that is, a mapped file with code, and the names of its functions. The file is read at the first lookup of a
// name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "perfkit/symbolizer.h"
#include "src/elf/image.h"
#include "src/proc/module_file.h"
#include "src/symbolize/debug_file.h"
#include "src/symbolize/line_source.h"
#include "src/symbolize/symbol_table.h"

namespace perfkit::symbolize {

// Interfaces to the component perfkit::dwarf; each may be null.
struct Helpers {
  LineSource* lines = nullptr;
  DebugFetcher* fetcher = nullptr;
};

// Not thread-safe. Code without a file has no names, except the vDSO's.
class Module {
 public:
  explicit Module(proc::ModuleId id) : id_(std::move(id)) {}

  const std::string& name() const { return id_.path; }
  bool has_file() const { return id_.is_file() || id_.is_vdso(); }

  // Reads the file at the first call; later calls return the same status. Errors: as proc::ModuleFile::Open: there
  // are no names; also Unimplemented and others if compressed symbols (.gnu_debugdata) can't be read: there are only
  // the names that the file exports. With helpers.lines, keeps the file mapped, and decompresses compressed symbols.
  // With helpers.fetcher, downloads a missing debug file.
  const absl::Status& Load(const SymbolizerOptions& options, const Helpers& helpers);
  bool loaded() const { return loaded_; }
  // Its bytes; "" if it has none, or if the kernel did not say and the file was not read.
  const std::string& build_id() const { return id_.build_id; }
  const absl::Status& status() const { return status_; }
  const std::string& debug_path() const { return debug_path_; }
  size_t symbols() const { return table_.size(); }

  // Registers the module in helpers.lines as number `number`, at the first call. Requires Load.
  const absl::Status& OpenLines(const SymbolizerOptions& options, const Helpers& helpers, uint32_t number);
  const absl::Status& lines_status() const { return lines_status_; }

  // Returns the address before relocation of the byte at `offset` of the file, or nullopt if it is not code. Requires
  // Load.
  std::optional<uint64_t> AddressOf(uint64_t offset) const { return code_.AddressOf(offset); }
  std::optional<SymbolTable::Found> Find(uint64_t address) const { return table_.Find(address); }

 private:
  absl::Status TakeSymbols(const elf::Image& image, const elf::Image* debug, LineSource* lines);
  std::optional<DebugFile> GetDebugFile(const elf::Image& image, const SymbolizerOptions& options,
                                        const Helpers& helpers);
  absl::Status OpenSections(const SymbolizerOptions& options, const Helpers& helpers, uint32_t number);

  proc::ModuleId id_;
  bool loaded_ = false;
  absl::Status status_;
  std::string debug_path_;
  absl::Status fetched_;  // Why no debug file was downloaded; OK if it was not tried.
  bool lines_opened_ = false;
  absl::Status lines_status_;
  // The files that a LineSource reads: the module's, its separate debug file, and dwz's shared one.
  std::optional<proc::ModuleFile> file_;
  std::optional<DebugFile> debug_, shared_;
  proc::LoadedCode code_;
  SymbolTable table_;
};

}  // namespace perfkit::symbolize
