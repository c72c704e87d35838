// The records of a section of call frame information: CIEs and FDEs, as libdw takes them apart.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "src/unwind/dwarf/cfi_program.h"

namespace perfkit::unwind {

// One thread at a time. The section's bytes must outlive this.
class CfiRecords {
 public:
  // `ident`: the first bytes of the ELF file, which say how its numbers are written.
  CfiRecords(base::Bytes ident, const CfiSection& section) : ident_(ident), section_(section), program_(section_) {}
  CfiRecords(const CfiRecords&) = delete;
  CfiRecords& operator=(const CfiRecords&) = delete;

  const CfiSection& section() const { return section_; }

  // The FDE that begins at `offset`. Its CIE lives until the next call. False when there is none, or it is damaged.
  bool FdeAt(uint64_t offset, Fde& fde);

  // Every FDE with its offset, in the section's order. Ends at the first record that is too damaged to say where the
  // next one is.
  void ForEachFde(absl::FunctionRef<void(uint64_t offset, const Fde& fde)> visit);

  bool Run(const Fde& fde, CfiProgram::Visit visit) { return program_.Run(fde, visit); }

 private:
  struct KnownCie {
    uint64_t offset = 0;
    bool usable = false;
    Cie cie;
  };
  struct Record;

  enum class Next : uint8_t { kRecord, kDamaged, kEnd };
  Next Read(uint64_t offset, uint64_t& next, Record& record);
  bool ToFde(const Record& record, Fde& fde);
  const Cie* CieAt(uint64_t offset);
  bool ParseCie(uint64_t offset, Cie& cie);

  base::Bytes ident_;
  CfiSection section_;
  CfiProgram program_;
  // A module has a handful: with and without a place for exception tables, for signals. A file of many gets slow, not
  // big.
  static constexpr size_t kMaxCies = 8;
  std::vector<KnownCie> cies_;
  size_t oldest_ = 0;
};

}  // namespace perfkit::unwind
