// A module whose code is walked: its file, kept open, and what it says of how callers are found.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "src/proc/module_file.h"
#include "src/unwind/dwarf/cfi.h"

namespace perfkit::unwind {

// For one thread at a time. One that cannot be opened has no information.
class CodeModule {
 public:
  // Opens the file. `proc`: "/proc".
  CodeModule(const proc::ModuleId& id, const std::string& proc) : file_(proc::ModuleFile::Open(id, proc)) {
    if (!file_.ok()) return;
    code_ = proc::LoadedCode(file_->image());
    cfi_.emplace(file_->image());
  }
  CodeModule(const CodeModule&) = delete;
  CodeModule& operator=(const CodeModule&) = delete;

  const absl::Status& status() const { return file_.status(); }

  // `offset`: a place in the file.
  Rule At(uint64_t offset) {
    const std::optional<uint64_t> address = code_.AddressOf(offset);
    return address ? cfi_->At(*address) : Rule();
  }
  // The whole row, and where in the file's own address space the place is.
  bool Full(uint64_t offset, CfiRow& row, uint64_t& address) {
    const std::optional<uint64_t> found = code_.AddressOf(offset);
    return found && cfi_->Full(address = *found, row);
  }

  // Where in the file's own address space the function begins that the place is in.
  std::optional<uint64_t> FunctionAt(uint64_t offset) {
    const std::optional<uint64_t> address = code_.AddressOf(offset);
    return address ? cfi_->FunctionAt(*address) : std::nullopt;
  }

  size_t heap_bytes() const { return sizeof(*this) + (cfi_ ? cfi_->heap_bytes() : 0); }

 private:
  const absl::StatusOr<proc::ModuleFile> file_;
  proc::LoadedCode code_;
  std::optional<Cfi> cfi_;  // reads the file's bytes
};

}  // namespace perfkit::unwind
