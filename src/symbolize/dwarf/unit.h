// Units and their entries. .debug_info is a sequence of units; a unit is a tree of entries (DWARF 5, 7.5).
//
//   DebugInfo ── the headers of all units, read once
//   Unit      ── one unit: its abbreviations, and the bases of its strings, addresses and ranges
//   Entry     ── one entry, with the attributes that are needed for names, locations and calls
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "src/base/dwarf_reader.h"
#include "src/symbolize/dwarf/abbrev.h"
#include "src/symbolize/dwarf/sections.h"

namespace perfkit::symbolize::dwarf {

struct UnitHeader {
  uint64_t at = 0, entries_at = 0, end = 0;  // Offsets in .debug_info.
  uint64_t abbrevs_at = 0;
  Format format;
  uint8_t type = 0;  // DW_UT_*; before DWARF 5 always DW_UT_compile.
};

// The debug information of one file.
struct DebugInfo {
  explicit DebugInfo(const std::vector<DebugSection>& from) : sections(Sections::From(from)) {}

  // Finds the units, at the first call. Omits units with addresses of other than 8 bytes, or of other versions than 2
  // to 5.
  void FindUnits();
  // Returns the index of the unit that contains the entry at offset `at`; units.size() if there is none.
  size_t UnitAt(uint64_t at) const;

  Sections sections;
  std::vector<UnitHeader> units;  // In ascending order.
};

// The value of an attribute.
struct Value {
  enum class Kind : uint8_t {
    kNone,
    kNumber,
    kAddress,
    kListIndex,    // Index of a list of ranges.
    kEntry,        // Offset in .debug_info.
    kSharedEntry,  // Offset in .debug_info of dwz's shared file.
    kText,         // A text in .debug_info itself. Unit::Text reads this and the following kinds.
    kStr,          // Offset in .debug_str.
    kLineStr,      // Offset in .debug_line_str.
    kStrIndex,     // Index in .debug_str_offsets.
    kSharedStr,    // Offset in .debug_str of dwz's shared file.
  };
  Kind kind = Kind::kNone;
  uint64_t number = 0;

  bool known() const { return kind != Kind::kNone; }
};

// The attributes of an entry that are read.
struct Entry {
  uint64_t at = 0, after = 0;      // The offsets of the entry, and of its first child or the next entry.
  const Abbrev* abbrev = nullptr;  // Null for the end of a list of children.
  Value low, high, ranges, name, linkage_name, origin, sibling, file, line, column, comp_dir, line_program;
  Value str_offsets_base, addr_base, ranges_base;
};

class Unit {
 public:
  Unit(const DebugInfo& info, const DebugInfo* shared, const UnitHeader& header,
       std::shared_ptr<const AbbrevTable> abbrevs);

  const UnitHeader& header() const { return header_; }
  const Sections& sections() const { return info_->sections; }
  const Entry& root() const { return root_; }
  uint64_t low_pc() const { return root_.low.kind == Value::Kind::kAddress ? root_.low.number : 0; }

  // Reads the entry at the reader's position and advances it. Returns false at the end of the unit, or if the entry
  // can't be read.
  bool Read(base::DwarfReader& reader, Entry& entry) const;
  // As Read, without the attributes.
  bool Skip(base::DwarfReader& reader, Entry& entry) const;
  // Returns a reader of this unit's entries, at offset `at`.
  base::DwarfReader At(uint64_t at) const;

  // Returns an attribute of the root entry. For attributes that Entry does not have.
  Value RootValue(uint16_t attribute) const;
  // Returns "" if the value is not a text.
  std::string_view Text(const Value& value) const;
  // Returns an element of .debug_addr; 0 if there is none.
  uint64_t Address(uint64_t index) const;
  // Returns the offset of the list of ranges that `value` refers to, or nullopt.
  std::optional<uint64_t> RangeList(const Value& value) const;

  // Reads one value in the given encoding, from any section. A kText is an offset in that section.
  Value ReadValue(const AttributeSpec& spec, base::DwarfReader& reader, Format format) const;

 private:
  void SkipValue(const AttributeSpec& spec, base::DwarfReader& reader) const;
  uint64_t Indexed(base::Bytes table, uint64_t base, uint64_t index) const;

  const DebugInfo* info_;
  const DebugInfo* shared_;
  UnitHeader header_;
  std::shared_ptr<const AbbrevTable> abbrevs_;
  uint64_t str_offsets_base_, addr_base_, ranges_base_;
  Entry root_;
};

}  // namespace perfkit::symbolize::dwarf
