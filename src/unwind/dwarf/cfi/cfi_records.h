// The records of a section of call frame information: CIEs and FDEs, parsed by libdw.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "src/unwind/dwarf/cfi/cfi_program.h"

namespace perfkit::unwind {

// Not thread-safe. The section's bytes must outlive this.
class CfiRecords {
 public:
  // `ident`: the first bytes of the ELF file, by which libdw knows its class and byte order.
  CfiRecords(base::Bytes ident, const CfiSection& section) : ident_(ident), section_(section), program_(section_) {}
  CfiRecords(const CfiRecords&) = delete;
  CfiRecords& operator=(const CfiRecords&) = delete;

  const CfiSection& section() const { return section_; }

  // Reads the FDE at `offset` of the section. Its CIE is valid until the next call. Returns false if there is no FDE,
  // or if it is damaged.
  bool FdeAt(uint64_t offset, Fde& fde);

  // Calls visit for each FDE and its offset, in the section's order. Stops at the first record that is so damaged that
  // the next one can't be found.
  void ForEachFde(absl::FunctionRef<void(uint64_t offset, const Fde& fde)> visit);

  // Runs the program of an FDE.
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
  // As FdeAt, for the form that nearly all FDEs have. Returns false for others, and for FDEs whose CIE is not in cies_;
  // `fde` is then unspecified.
  bool UsualFdeAt(uint64_t offset, Fde& fde);
  // Skips the augmentation data and sets fde.program. Requires that `reader` is after the range.
  static bool ReadProgram(base::DwarfReader reader, Fde& fde);
  const KnownCie* FindCie(uint64_t offset) const;
  const Cie* CieAt(uint64_t offset);
  bool ParseCie(uint64_t offset, Cie& cie);

  base::Bytes ident_;
  CfiSection section_;
  CfiProgram program_;
  // A module has few CIEs: with and without exception tables, and for signals. A file with more of them costs time, not
  // memory.
  static constexpr size_t kMaxCies = 8;
  std::vector<KnownCie> cies_;
  size_t oldest_ = 0;  // Index of the CIE that was read last; the next one is replaced first.
};

}  // namespace perfkit::unwind
