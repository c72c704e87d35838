// A module whose code is unwound: its open file and its call frame information.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "src/proc/module_file.h"
#include "src/unwind/dwarf/cfi/cfi.h"

namespace perfkit::unwind {

// Not thread-safe. If the file can't be opened, there is no information.
class CodeModule {
 public:
  // Opens the file. `proc` is "/proc", or a copy in tests.
  CodeModule(const proc::ModuleId& id, const std::string& proc) : file_(proc::ModuleFile::Open(id, proc)) {
    if (!file_.ok()) return;
    code_ = proc::LoadedCode(file_->image());
    cfi_.emplace(file_->image());
  }
  CodeModule(const CodeModule&) = delete;
  CodeModule& operator=(const CodeModule&) = delete;

  const absl::Status& status() const { return file_.status(); }

  // Returns the rule at `offset` of the file.
  Rule At(uint64_t offset) {
    const std::optional<uint64_t> address = code_.AddressOf(offset);
    return address ? cfi_->At(*address) : Rule();
  }
  // Writes the whole row at `offset` of the file to `row`, and the address of that code before relocation to `address`.
  // Returns false if there is none.
  bool Full(uint64_t offset, CfiRow& row, uint64_t& address) {
    const std::optional<uint64_t> found = code_.AddressOf(offset);
    return found && cfi_->Full(address = *found, row);
  }

  // Returns the first address, before relocation, of the function that contains `offset` of the file; nullopt if there
  // is no information.
  std::optional<uint64_t> FunctionAt(uint64_t offset) {
    const std::optional<uint64_t> address = code_.AddressOf(offset);
    return address ? cfi_->FunctionAt(*address) : std::nullopt;
  }

  size_t heap_bytes() const { return sizeof(*this) + (cfi_ ? cfi_->heap_bytes() : 0); }

 private:
  const absl::StatusOr<proc::ModuleFile> file_;
  proc::LoadedCode code_;
  std::optional<Cfi> cfi_;  // Views the file's bytes.
};

}  // namespace perfkit::unwind
