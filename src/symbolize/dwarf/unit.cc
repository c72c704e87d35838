// Reads unit headers, entries and the forms of values. An entry's abbreviation lists its attributes with their forms;
// only the attributes in Wanted are read, all others are skipped by their size. A unit's base attributes
// (DW_AT_str_offsets_base etc.) are in its root entry, so a Unit reads that first. All offsets may be hostile: readers
// are bounded by the unit or the section, and a form of unknown size ends the unit.
#include "src/symbolize/dwarf/unit.h"

#include <dwarf.h>

#include <algorithm>

namespace perfkit::symbolize::dwarf {
namespace {

// Longer texts count as damaged, so that copies of overlapping texts do not take quadratic memory.
constexpr size_t kLongestText = 64 << 10;

// DWARF 5, 7.5.1: the type is before the abbreviations' offset, and some types have additional fields.
bool ReadHeader(base::DwarfReader& reader, UnitHeader& header) {
  header.at = reader.at();
  uint32_t offset_bytes = 0;
  const uint64_t length = reader.InitialLength(&offset_bytes);
  const uint64_t begin = reader.at();
  base::DwarfReader rest = reader;
  reader.Skip(length);
  if (!reader.ok()) return false;
  header.end = begin + length;
  header.format = {rest.U16(), 8, static_cast<uint8_t>(offset_bytes)};
  header.type = DW_UT_compile;
  if (header.format.version >= 5) {
    header.type = rest.U8();
    header.format.address_bytes = rest.U8();
    header.abbrevs_at = rest.Sized(offset_bytes);
    // The unit's id; for types a signature and an offset.
    if (header.type == DW_UT_skeleton || header.type == DW_UT_split_compile) rest.Skip(8);
    if (header.type == DW_UT_type || header.type == DW_UT_split_type) rest.Skip(8 + offset_bytes);
  } else {
    header.abbrevs_at = rest.Sized(offset_bytes);
    header.format.address_bytes = rest.U8();
  }
  header.entries_at = rest.at();
  return true;
}

Value Number(uint64_t number, Value::Kind kind = Value::Kind::kNumber) { return {kind, number}; }

// Returns where a value of this attribute is stored; nullptr if it is not used.
Value* Wanted(uint16_t attribute, Entry& entry) {
  switch (attribute) {
    case DW_AT_low_pc: return &entry.low;
    case DW_AT_high_pc: return &entry.high;
    case DW_AT_ranges: return &entry.ranges;
    case DW_AT_name: return &entry.name;
    case DW_AT_linkage_name:
    case DW_AT_MIPS_linkage_name: return &entry.linkage_name;
    case DW_AT_abstract_origin:
    case DW_AT_specification: return &entry.origin;
    case DW_AT_sibling: return &entry.sibling;
    case DW_AT_call_file: return &entry.file;
    case DW_AT_call_line: return &entry.line;
    case DW_AT_call_column: return &entry.column;
    case DW_AT_comp_dir: return &entry.comp_dir;
    case DW_AT_stmt_list: return &entry.line_program;
    case DW_AT_str_offsets_base: return &entry.str_offsets_base;
    case DW_AT_addr_base:
    case DW_AT_GNU_addr_base: return &entry.addr_base;
    case DW_AT_rnglists_base: return &entry.ranges_base;
    default: return nullptr;
  }
}

}  // namespace

void DebugInfo::FindUnits() {
  if (!units.empty()) return;
  base::DwarfReader reader(sections.info);
  for (UnitHeader header; !reader.done() && ReadHeader(reader, header); header = {}) {
    const bool known = header.format.version >= 2 && header.format.version <= 5 && header.format.address_bytes == 8;
    if (known && header.entries_at <= header.end) units.push_back(header);
  }
}

size_t DebugInfo::UnitAt(uint64_t at) const {
  const auto after = std::upper_bound(units.begin(), units.end(), at,
                                      [](uint64_t wanted, const UnitHeader& unit) { return wanted < unit.at; });
  if (after == units.begin() || at >= std::prev(after)->end) return units.size();
  return static_cast<size_t>(std::prev(after) - units.begin());
}

// The root entry has the bases, and some of its other values are relative to them. So it is read twice.
Unit::Unit(const DebugInfo& info, const DebugInfo* shared, const UnitHeader& header,
           std::shared_ptr<const AbbrevTable> abbrevs)
    : info_(&info), shared_(shared), header_(header), abbrevs_(std::move(abbrevs)) {
  const bool wide = header.format.offset_bytes == 8;
  // Defaults for units without such attributes: the elements come right after the table's header (DWARF 5, 7.26 to
  // 7.28).
  str_offsets_base_ = addr_base_ = wide ? 16 : 8;
  ranges_base_ = header.format.version < 5 ? 0 : wide ? 20 : 12;
  base::DwarfReader reader = At(header.entries_at);
  if (!Read(reader, root_)) return;
  if (root_.str_offsets_base.known()) str_offsets_base_ = root_.str_offsets_base.number;
  if (root_.addr_base.known()) addr_base_ = root_.addr_base.number;
  if (root_.ranges_base.known()) ranges_base_ = root_.ranges_base.number;
  reader = At(header.entries_at);
  Read(reader, root_);
}

base::DwarfReader Unit::At(uint64_t at) const {
  base::DwarfReader reader(sections().info, at);
  reader.EndAt(header_.end);
  return reader;
}

bool Unit::Skip(base::DwarfReader& reader, Entry& entry) const {
  entry.at = reader.at();
  entry.abbrev = nullptr;
  if (reader.done()) return false;
  if (const uint64_t code = reader.Uleb(); code != 0) {
    entry.abbrev = abbrevs_->Find(code);
    if (entry.abbrev == nullptr) return false;
    if (entry.abbrev->bytes != Abbrev::kVaries) {
      reader.Skip(entry.abbrev->bytes);
    } else {
      const AttributeSpec* const specs = abbrevs_->attributes(*entry.abbrev);
      for (uint32_t i = 0; i < entry.abbrev->count && reader.ok(); ++i) SkipValue(specs[i], reader);
    }
  }
  entry.after = reader.at();
  return reader.ok();
}

bool Unit::Read(base::DwarfReader& reader, Entry& entry) const {
  entry = Entry();
  entry.at = reader.at();
  if (reader.done()) return false;
  if (const uint64_t code = reader.Uleb(); code != 0) {
    entry.abbrev = abbrevs_->Find(code);
    if (entry.abbrev == nullptr) return false;
    const AttributeSpec* const specs = abbrevs_->attributes(*entry.abbrev);
    for (uint32_t i = 0; i < entry.abbrev->count && reader.ok(); ++i) {
      if (Value* const value = Wanted(specs[i].attribute, entry)) {
        *value = ReadValue(specs[i], reader, header_.format);
      } else {
        SkipValue(specs[i], reader);
      }
    }
  }
  entry.after = reader.at();
  return reader.ok();
}

Value Unit::RootValue(uint16_t attribute) const {
  if (root_.abbrev == nullptr) return {};
  base::DwarfReader reader = At(header_.entries_at);
  reader.Uleb();  // The code of the abbreviation.
  const AttributeSpec* const specs = abbrevs_->attributes(*root_.abbrev);
  for (uint32_t i = 0; i < root_.abbrev->count && reader.ok(); ++i) {
    if (specs[i].attribute == attribute) return ReadValue(specs[i], reader, header_.format);
    SkipValue(specs[i], reader);
  }
  return {};
}

uint64_t Unit::Address(uint64_t index) const {
  if (index > sections().addr.size() / 8) return 0;
  return base::ReadAt<uint64_t>(sections().addr, addr_base_ + index * 8).value_or(0);
}

// Returns an element of a table of offsets, or ~0 if there is none.
uint64_t Unit::Indexed(base::Bytes table, uint64_t base, uint64_t index) const {
  const uint32_t size = header_.format.offset_bytes;
  if (index > table.size() / size) return ~uint64_t{0};
  base::DwarfReader reader(table, base + index * size);
  const uint64_t at = reader.Sized(size);
  return reader.ok() ? at : ~uint64_t{0};
}

std::string_view Unit::Text(const Value& value) const {
  base::Bytes section = sections().str;
  uint64_t at = value.number;
  switch (value.kind) {
    case Value::Kind::kStr: break;
    case Value::Kind::kText: section = sections().info; break;
    case Value::Kind::kLineStr: section = sections().line_str; break;
    case Value::Kind::kStrIndex: at = Indexed(sections().str_offsets, str_offsets_base_, at); break;
    case Value::Kind::kSharedStr: section = shared_ == nullptr ? base::Bytes() : shared_->sections.str; break;
    default: return {};
  }
  const std::string_view text = base::TextAt(section, at).value_or(std::string_view());
  return text.size() <= kLongestText ? text : std::string_view();
}

std::optional<uint64_t> Unit::RangeList(const Value& value) const {
  if (value.kind == Value::Kind::kNumber) return value.number;
  if (value.kind != Value::Kind::kListIndex) return std::nullopt;
  return ranges_base_ + Indexed(sections().rnglists, ranges_base_, value.number);
}

// DWARF 5, 7.5.5. References within the unit are relative to its header.
Value Unit::ReadValue(const AttributeSpec& spec, base::DwarfReader& reader, Format format) const {
  using Kind = Value::Kind;
  const uint32_t bytes = FormBytes(spec.form, format);
  switch (spec.form) {
    case DW_FORM_addr: return Number(reader.U64(), Kind::kAddress);
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4: return Number(Address(reader.Sized(bytes)), Kind::kAddress);
    case DW_FORM_addrx:
    case DW_FORM_GNU_addr_index: return Number(Address(reader.Uleb()), Kind::kAddress);
    case DW_FORM_data1:
    case DW_FORM_data2:
    case DW_FORM_data4:
    case DW_FORM_data8:
    case DW_FORM_flag:
    case DW_FORM_sec_offset: return Number(reader.Sized(bytes));
    case DW_FORM_udata: return Number(reader.Uleb());
    case DW_FORM_sdata: return Number(static_cast<uint64_t>(reader.Sleb()));
    case DW_FORM_implicit_const: return Number(static_cast<uint64_t>(spec.constant));
    case DW_FORM_flag_present: return Number(1);
    case DW_FORM_rnglistx: return Number(reader.Uleb(), Kind::kListIndex);
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8: return Number(header_.at + reader.Sized(bytes), Kind::kEntry);
    case DW_FORM_ref_udata: return Number(header_.at + reader.Uleb(), Kind::kEntry);
    case DW_FORM_ref_addr: return Number(reader.Sized(bytes), Kind::kEntry);
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_ref_sup4:
    case DW_FORM_ref_sup8: return Number(reader.Sized(bytes), Kind::kSharedEntry);
    case DW_FORM_string: {
      const uint64_t at = reader.at();
      reader.Text();
      return Number(at, Kind::kText);
    }
    case DW_FORM_strp: return Number(reader.Sized(bytes), Kind::kStr);
    case DW_FORM_line_strp: return Number(reader.Sized(bytes), Kind::kLineStr);
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4: return Number(reader.Sized(bytes), Kind::kStrIndex);
    case DW_FORM_strx:
    case DW_FORM_GNU_str_index: return Number(reader.Uleb(), Kind::kStrIndex);
    case DW_FORM_GNU_strp_alt:
    case DW_FORM_strp_sup: return Number(reader.Sized(bytes), Kind::kSharedStr);
    case DW_FORM_indirect: {
      const AttributeSpec said{spec.attribute, static_cast<uint16_t>(reader.Uleb())};
      if (said.form != DW_FORM_indirect) return ReadValue(said, reader, format);
      return reader.Skip(~uint64_t{0}), Value{};
    }
    default: return SkipValue(spec, reader), Value{};
  }
}

void Unit::SkipValue(const AttributeSpec& spec, base::DwarfReader& reader) const {
  const uint32_t bytes = FormBytes(spec.form, header_.format);
  if (bytes != Abbrev::kVaries) return reader.Skip(bytes);
  switch (spec.form) {
    case DW_FORM_block1: return reader.Skip(reader.U8());
    case DW_FORM_block2: return reader.Skip(reader.U16());
    case DW_FORM_block4: return reader.Skip(reader.U32());
    case DW_FORM_block:
    case DW_FORM_exprloc: return reader.Skip(reader.Uleb());
    case DW_FORM_string: reader.Text(); return;
    case DW_FORM_sdata:
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index: reader.Uleb(); return;
    case DW_FORM_indirect: ReadValue(spec, reader, header_.format); return;
    default: reader.Skip(~uint64_t{0});  // Unknown: no entry after it can be found.
  }
}

}  // namespace perfkit::symbolize::dwarf
