// Reads abbreviations, and determines which entries have a constant size: these are skipped by one addition instead of
// attribute by attribute, and most entries of a file are only skipped.
#include "src/symbolize/dwarf/abbrev.h"

#include <dwarf.h>

#include <algorithm>

#include "src/base/dwarf_reader.h"

namespace perfkit::symbolize::dwarf {

// DWARF 5, 7.5.5 and 7.5.6. The forms DW_FORM_GNU_… are those of dwz, and of GCC before DWARF 5.
uint32_t FormBytes(uint16_t form, Format format) {
  switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const: return 0;
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1: return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2: return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3: return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_ref_sup4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4: return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sup8:
    case DW_FORM_ref_sig8: return 8;
    case DW_FORM_data16: return 16;
    case DW_FORM_addr: return format.address_bytes;
    case DW_FORM_ref_addr: return format.version <= 2 ? format.address_bytes : format.offset_bytes;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_sec_offset:
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt: return format.offset_bytes;
    default: return Abbrev::kVaries;
  }
}

AbbrevTable::AbbrevTable(base::Bytes section, uint64_t at, Format format) : format_(format) {
  base::DwarfReader reader(section, at);
  while (const uint64_t code = reader.Uleb()) {
    Abbrev abbrev{.tag = static_cast<uint16_t>(reader.Uleb()),
                  .children = reader.U8() != 0,
                  .first = static_cast<uint32_t>(specs_.size())};
    while (reader.ok()) {
      AttributeSpec spec{static_cast<uint16_t>(reader.Uleb()), static_cast<uint16_t>(reader.Uleb())};
      if (spec.form == DW_FORM_implicit_const) spec.constant = reader.Sleb();
      if (spec.attribute == 0 && spec.form == 0) break;
      specs_.push_back(spec);
      ++abbrev.count;
      abbrev.sibling = abbrev.sibling || spec.attribute == DW_AT_sibling;
      // A function without these is a declaration, or one that was inlined everywhere.
      abbrev.code = abbrev.code || spec.attribute == DW_AT_low_pc || spec.attribute == DW_AT_ranges;
      const uint32_t bytes = FormBytes(spec.form, format);
      abbrev.bytes =
          bytes == Abbrev::kVaries || abbrev.bytes == Abbrev::kVaries ? Abbrev::kVaries : abbrev.bytes + bytes;
    }
    if (!reader.ok()) break;
    // Codes count up from 1 in the files of all compilers that were seen; the format permits any.
    if (code == dense_.size() + 1) {
      dense_.push_back(abbrev);
    } else {
      sparse_.push_back({code, abbrev});
    }
  }
  section_bytes_ = reader.at() - std::min<uint64_t>(at, reader.at());
  specs_.shrink_to_fit();
  dense_.shrink_to_fit();
  std::stable_sort(sparse_.begin(), sparse_.end(), [](const Sparse& a, const Sparse& b) { return a.code < b.code; });
}

const Abbrev* AbbrevTable::Find(uint64_t code) const {
  // Code 0 wraps around to a number that no table has.
  if (code - 1 < dense_.size()) return &dense_[code - 1];
  const auto found = std::lower_bound(sparse_.begin(), sparse_.end(), code,
                                      [](const Sparse& sparse, uint64_t wanted) { return sparse.code < wanted; });
  return found != sparse_.end() && found->code == code ? &found->abbrev : nullptr;
}

size_t AbbrevTable::bytes() const {
  return dense_.capacity() * sizeof(Abbrev) + sparse_.capacity() * sizeof(Sparse) +
         specs_.capacity() * sizeof(AttributeSpec);
}

}  // namespace perfkit::symbolize::dwarf
