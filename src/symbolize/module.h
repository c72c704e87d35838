// A module: a file that is mapped and executed, with the names of its functions. Read when the first name is asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "src/elf/image.h"
#include "src/proc/module_file.h"
#include "src/symbolize/symbol_table.h"

namespace perfkit::symbolize {

// Code that no file holds has no names, but for the vDSO's.
class Module {
 public:
  explicit Module(proc::ModuleId id) : id_(std::move(id)) {}

  const std::string& name() const { return id_.path; }
  bool has_file() const { return id_.is_file() || id_.is_vdso(); }

  // Reads the file, once; every later call gives the same answer. `proc` and `debug_root` are folders, as in
  // SymbolizerOptions. What proc::ModuleFile::Open says when that cannot be done.
  const absl::Status& Load(const std::string& proc, const std::string& debug_root);
  bool loaded() const { return loaded_; }
  const absl::Status& status() const { return status_; }
  const std::string& debug_path() const { return debug_path_; }
  size_t symbols() const { return table_.size(); }

  // After Load. Where the byte at `offset` of the file is loaded, before relocation; nothing when that is no code.
  std::optional<uint64_t> AddressOf(uint64_t offset) const { return code_.AddressOf(offset); }
  std::optional<SymbolTable::Found> Find(uint64_t address) const { return table_.Find(address); }

 private:
  void TakeSymbols(const elf::Image& image, const elf::Image* debug);

  proc::ModuleId id_;
  bool loaded_ = false;
  absl::Status status_;
  std::string debug_path_;
  proc::LoadedCode code_;
  SymbolTable table_;
};

}  // namespace perfkit::symbolize
