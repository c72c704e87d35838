// A module whose code is unwound: its open file and its call frame information.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "src/proc/module_file.h"
#include "src/unwind/dwarf/cfi/cfi.h"
#include "src/unwind/dwarf/cfi/code_evidence.h"

namespace perfkit::unwind {

// Not thread-safe. If the file can't be opened, there is no information.
class CodeModule {
 public:
  // Rule::offset of a kRoot rule that was found because pc would be a planted return address. Such a rule applies only
  // if pc is a return address and no guess.
  static constexpr int32_t kPlanted = 1;

  // Opens the file. `proc` is "/proc", or a copy in tests.
  CodeModule(const proc::ModuleId& id, const std::string& proc)
      : is_file_(id.is_file() || id.is_vdso()),
        may_be_made_(id.may_be_made()),
        file_(proc::ModuleFile::Open(id, proc)) {
    if (!file_.ok()) return;
    code_ = proc::LoadedCode(file_->image());
    cfi_.emplace(file_->image());
    entry_ = EntryCode(*cfi_, EntryOf(file_->image()));
  }
  CodeModule(const CodeModule&) = delete;
  CodeModule& operator=(const CodeModule&) = delete;

  const absl::Status& status() const { return file_.status(); }
  // Returns false for memory without a file, such as that of a JIT compiler.
  bool is_file() const { return is_file_; }
  // Returns true for code that can't be read: the process may have made it, or its file can't be read.
  bool is_unknown() const { return may_be_made_ || (is_file_ && !file_.ok()); }

  // Returns the rule at `offset` of the file. If `may_be_planted`, it may be that of a planted return address.
  Rule At(uint64_t offset, bool may_be_planted) {
    const std::optional<uint64_t> address = code_.AddressOf(offset);
    if (!address) return {};
    bool covered = false;
    const Rule rule = cfi_->At(*address, covered);
    if (!covered) return WithoutFunction(offset, *address, rule, may_be_planted);
    return Installs(offset, *address) ? Rule{.kind = RuleKind::kInstalls} : rule;
  }
  // Writes the whole row at `offset` of the file to `row`, and the address of that code before relocation to `address`.
  // Returns false if there is none.
  bool Full(uint64_t offset, CfiRow& row, uint64_t& address) {
    const std::optional<uint64_t> found = code_.AddressOf(offset);
    return found && cfi_->Full(address = *found, row);
  }

  // Returns the code around `offset` of the file.
  CodeWindow CodeAround(uint64_t offset) const {
    CodeWindow code;
    const std::optional<uint64_t> address = code_.AddressOf(offset);
    if (!address) return code;
    const base::Bytes bytes = file_->image().bytes();
    const uint64_t first = offset - (*address - CodeWindow::BeginOf(*address));
    for (uint64_t i = 0; i < sizeof(code.bytes); ++i) {
      if (first + i < bytes.size()) code.bytes[i] = static_cast<uint8_t>(bytes[first + i]);
    }
    return code;
  }

  size_t heap_bytes() const { return sizeof(*this) + (cfi_ ? cfi_->heap_bytes() : 0); }

 private:
  // Returns true for code that installs a landing pad: InstallCode.
  bool Installs(uint64_t offset, uint64_t address) {
    const std::optional<uint64_t> jump = cfi_->LandingJumpIn(address);
    if (!jump) return false;
    const uint64_t end = offset + (*jump - address);
    const uint64_t size = std::min({kMaxInstallCode, end, *jump - cfi_->FunctionAt(*jump).value_or(*jump)});
    const auto before = base::Slice(file_->image().bytes(), end - size, size);
    return before && InstallCode(*cfi_, *jump, *before).Holds(address);
  }
  // Returns the rule of code that is in no function with information; `rule` is that of padding.
  Rule WithoutFunction(uint64_t offset, uint64_t address, const Rule& rule, bool may_be_planted) {
    if (entry_.Holds(address)) return {.kind = RuleKind::kEntry};
    const CodeWindow code = CodeAround(offset);
    if (may_be_planted && cfi_->IsFunctionBegin(address + 1) &&
        FindCallBefore(code, address + 1).kind == CallKind::kNone) {
      return {.offset = kPlanted, .kind = RuleKind::kRoot};
    }
    return rule.kind == RuleKind::kNone ? RuleByCode(code, address) : rule;
  }

  const bool is_file_, may_be_made_;
  const absl::StatusOr<proc::ModuleFile> file_;
  proc::LoadedCode code_;
  std::optional<Cfi> cfi_;  // Views the file's bytes.
  AddressRange entry_;      // The code at the entry point, if it has no information.
};

}  // namespace perfkit::unwind
