// Reads CIEs and FDEs: libdw splits the section into records, whose fields are read here. FDEs in the form that
// assemblers write for 64-bit machines are read without libdw, which takes a quarter of the time. CIEs are kept,
// because many FDEs share one, and each has a program that would otherwise run again for each function.
#include "src/unwind/dwarf/cfi/cfi_records.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>

namespace perfkit::unwind {
namespace {

// libdw requires bytes that are not const, but does not change them here.
Elf_Data ToData(base::Bytes bytes) {
  Elf_Data data{};
  data.d_buf = const_cast<std::byte*>(bytes.data());
  data.d_type = ELF_T_BYTE;
  data.d_version = EV_CURRENT;
  data.d_size = bytes.size();
  return data;
}

base::Bytes Between(const uint8_t* begin, const uint8_t* end) {
  return std::as_bytes(std::span(begin, begin <= end ? static_cast<size_t>(end - begin) : 0));
}

// Skips the address of the personality routine, which unwinding does not need.
bool SkipPersonality(base::DwarfReader& data, const CfiSection& section) {
  const auto encoding = data.Fixed<uint8_t>();
  return ReadPointer(data, encoding & 0x0f, section).has_value();
}

// Reads the augmentation letters after 'z' (LSB Core 5.0, 10.6.1.1.1; 'B' and 'G' are aarch64's). Letters after an
// unknown one can't be read, but with 'z' the beginning of the program is known.
bool ReadAugmentation(const Dwarf_CIE& from, const CfiSection& section, Cie& cie) {
  const char* letter = from.augmentation;
  if (*letter == '\0' || std::string_view(letter) == "eh") return true;
  if (*letter != 'z') return false;
  cie.sized_augmentation = true;
  base::DwarfReader data(Between(from.augmentation_data, from.augmentation_data + from.augmentation_data_size));
  while (*++letter != '\0') {
    switch (*letter) {
      case 'L': data.Fixed<uint8_t>(); break;
      case 'R': cie.pointer_encoding = data.Fixed<uint8_t>(); break;
      case 'P':
        if (!SkipPersonality(data, section)) return false;
        break;
      case 'S': cie.initial.signal_frame = true; break;
      case 'B':
      case 'G': break;
      default: return data.ok();
    }
  }
  return data.ok();
}

}  // namespace

struct CfiRecords::Record {
  Dwarf_CFI_Entry entry;
};

// For a record that it can't read, libdw returns -1 and the offset of the next one; for an implausible length it does
// not move.
CfiRecords::Next CfiRecords::Read(uint64_t offset, uint64_t& next, Record& record) {
  Elf_Data data = ToData(section_.bytes);
  Dwarf_Off next_offset = offset;
  const int result = dwarf_next_cfi(reinterpret_cast<const unsigned char*>(ident_.data()), &data, section_.is_eh,
                                    offset, &next_offset, &record.entry);
  next = next_offset;
  if (result == 0) return Next::kRecord;
  return result < 0 && next_offset > offset && next_offset < section_.bytes.size() ? Next::kDamaged : Next::kEnd;
}

bool CfiRecords::FdeAt(uint64_t offset, Fde& fde) {
  if (UsualFdeAt(offset, fde)) return true;
  uint64_t next = 0;
  Record record;
  if (offset >= section_.bytes.size() || Read(offset, next, record) != Next::kRecord) return false;
  return !dwarf_cfi_cie_p(&record.entry) && ToFde(record, fde);
}

// The usual form has a 32-bit size, a 32-bit distance back to a CIE that was read before, and two 32-bit numbers: the
// first address, relative to its own place, and the length of the code (LSB Core 5.0, 10.6.1.2). As libdw, does not
// take the section's first record for an FDE.
bool CfiRecords::UsualFdeAt(uint64_t offset, Fde& fde) {
  struct Head {
    uint32_t size, to_cie;
    int32_t begin;
    uint32_t length;
  };
  constexpr uint32_t kRange = 8, kFirstReserved = 0xffff'fff0;  // DWARF 5, 7.4: 0xffffffff means the 64-bit format.
  const std::optional<Head> head = base::ReadAt<Head>(section_.bytes, offset);
  if (!section_.is_eh || offset == 0 || !head || head->to_cie == 0 || head->size >= kFirstReserved) return false;
  const uint64_t at_id = offset + sizeof(head->size);
  if (head->to_cie > at_id || head->size < sizeof(head->to_cie) + kRange) return false;
  const KnownCie* const known = FindCie(at_id - head->to_cie);
  if (known == nullptr || !known->usable || known->cie.pointer_encoding != (DW_EH_PE_pcrel | DW_EH_PE_sdata4)) {
    return false;
  }
  const uint64_t at_begin = at_id + sizeof(head->to_cie);
  const auto rest = base::Slice(section_.bytes, at_begin + kRange, head->size - sizeof(head->to_cie) - kRange);
  if (!rest) return false;
  fde.cie = &known->cie;
  fde.begin = section_.address + at_begin + static_cast<uint64_t>(int64_t{head->begin});
  fde.end = fde.begin + head->length;
  return fde.begin <= fde.end && ReadProgram(base::DwarfReader(*rest), fde);
}

bool CfiRecords::ReadProgram(base::DwarfReader reader, Fde& fde) {
  if (fde.cie->sized_augmentation) reader.Block(reader.Uleb());
  fde.program = reader.rest();
  return reader.ok();
}

void CfiRecords::ForEachFde(absl::FunctionRef<void(uint64_t offset, const Fde& fde)> visit) {
  Record record;
  for (uint64_t offset = 0, next = 0; offset < section_.bytes.size(); offset = next) {
    const Next what = Read(offset, next, record);
    if (what == Next::kEnd || next <= offset) return;
    Fde fde;
    if (what == Next::kRecord && !dwarf_cfi_cie_p(&record.entry) && ToFde(record, fde)) visit(offset, fde);
  }
}

// The range is two numbers in the CIE's encoding. The second is a length, so only the size of its encoding matters.
bool CfiRecords::ToFde(const Record& record, Fde& fde) {
  const Dwarf_FDE& from = record.entry.fde;
  fde.cie = CieAt(from.CIE_pointer);
  if (fde.cie == nullptr) return false;
  base::DwarfReader reader(Between(from.start, from.end));
  const std::optional<uint64_t> begin = ReadPointer(reader, fde.cie->pointer_encoding, section_);
  const std::optional<uint64_t> length = ReadPointer(reader, fde.cie->pointer_encoding & 0x07, section_);
  if (!begin || !length || *begin + *length < *begin) return false;
  fde.begin = *begin;
  fde.end = *begin + *length;
  return ReadProgram(reader, fde);
}

const CfiRecords::KnownCie* CfiRecords::FindCie(uint64_t offset) const {
  for (const KnownCie& known : cies_) {
    if (known.offset == offset) return &known;
  }
  return nullptr;
}

const Cie* CfiRecords::CieAt(uint64_t offset) {
  if (const KnownCie* const known = FindCie(offset)) return known->usable ? &known->cie : nullptr;
  if (cies_.size() < kMaxCies) {
    cies_.reserve(kMaxCies);  // CIEs do not move, because FDEs point to them.
    oldest_ = cies_.size();
    cies_.emplace_back();
  } else {
    oldest_ = (oldest_ + 1) % kMaxCies;
  }
  KnownCie& known = cies_[oldest_] = KnownCie{.offset = offset, .cie = {}};
  known.usable = ParseCie(offset, known.cie);
  return known.usable ? &known.cie : nullptr;
}

bool CfiRecords::ParseCie(uint64_t offset, Cie& cie) {
  uint64_t next = 0;
  Record record;
  if (offset >= section_.bytes.size() || Read(offset, next, record) != Next::kRecord) return false;
  if (!dwarf_cfi_cie_p(&record.entry)) return false;
  const Dwarf_CIE& from = record.entry.cie;
  cie.code_alignment = from.code_alignment_factor;
  cie.data_alignment = from.data_alignment_factor;
  cie.program = Between(from.initial_instructions, from.initial_instructions_end);
  cie.initial.section = section_.bytes;
  cie.initial.return_register = static_cast<uint32_t>(std::min<uint64_t>(from.return_address_register, UINT32_MAX));
  return ReadAugmentation(from, section_, cie) && program_.RunInitial(cie);
}

}  // namespace perfkit::unwind
