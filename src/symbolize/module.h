// A module: a file that is mapped and executed, with the names of its functions. Read when the first name is asked for.
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

// Who does what the core does not; each may be null.
struct Helpers {
  LineSource* lines = nullptr;
  DebugFetcher* fetcher = nullptr;
};

// Code that no file holds has no names, but for the vDSO's.
class Module {
 public:
  explicit Module(proc::ModuleId id) : id_(std::move(id)) {}

  const std::string& name() const { return id_.path; }
  bool has_file() const { return id_.is_file() || id_.is_vdso(); }

  // Reads the file, once; every later call gives the same answer. What proc::ModuleFile::Open says when that cannot be
  // done. For `lines` the file is kept; it unpacks symbols that are packed, and `fetcher` gets what is not here.
  const absl::Status& Load(const SymbolizerOptions& options, const Helpers& helpers);
  bool loaded() const { return loaded_; }
  // Its bytes; "" if it has none, or if the kernel did not say and the file was not read.
  const std::string& build_id() const { return id_.build_id; }
  const absl::Status& status() const { return status_; }
  const std::string& debug_path() const { return debug_path_; }
  size_t symbols() const { return table_.size(); }

  // After Load: opens it in helpers.lines, under the number that the caller has for it, once.
  const absl::Status& OpenLines(const SymbolizerOptions& options, const Helpers& helpers, uint32_t number);
  const absl::Status& lines_status() const { return lines_status_; }

  // After Load. Where the byte at `offset` of the file is loaded, before relocation; nothing when that is no code.
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
  absl::Status fetched_;  // why there is no debug file from elsewhere; OK where nobody was asked
  bool lines_opened_ = false;
  absl::Status lines_status_;
  // What a LineSource looks at: the file, its separate debug file, and what that has in common with others.
  std::optional<proc::ModuleFile> file_;
  std::optional<DebugFile> debug_, shared_;
  proc::LoadedCode code_;
  SymbolTable table_;
};

}  // namespace perfkit::symbolize
