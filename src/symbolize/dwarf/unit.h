// Units and their entries: .debug_info is a row of units, each a tree of entries (DWARF 5, 7.5).
//
//   DebugInfo ── headers of all units, found once
//   Unit      ── one of them, ready to be read: its abbreviations and where its strings, addresses and ranges begin
//   Entry     ── one entry's attributes, of those that names, places and calls are made of
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
  uint64_t at = 0, entries_at = 0, end = 0;  // in .debug_info
  uint64_t abbrevs_at = 0;
  Format format;
  uint8_t type = 0;  // DW_UT_; before DWARF 5 DW_UT_compile, whatever it is
};

// One file's debug information.
struct DebugInfo {
  explicit DebugInfo(const std::vector<DebugSection>& from) : sections(Sections::From(from)) {}

  // Finds the units, once. Those with addresses of other than 8 bytes, or of another version than 2 to 5, are left out.
  void FindUnits();
  // Index of the unit that the entry at `at` is in; units.size() when there is none.
  size_t UnitAt(uint64_t at) const;

  Sections sections;
  std::vector<UnitHeader> units;  // in rising order
};

// A value of an attribute.
struct Value {
  enum class Kind : uint8_t {
    kNone,
    kNumber,
    kAddress,
    kListIndex,    // of a list of ranges
    kEntry,        // where in .debug_info
    kSharedEntry,  // the same in the file that dwz made
    kText,         // texts are looked up by Unit::Text: this one is in .debug_info itself
    kStr,          // in .debug_str
    kLineStr,      // in .debug_line_str
    kStrIndex,     // by .debug_str_offsets
    kSharedStr,    // in .debug_str of the file that dwz made
  };
  Kind kind = Kind::kNone;
  uint64_t number = 0;

  bool known() const { return kind != Kind::kNone; }
};

// What is read of an entry.
struct Entry {
  uint64_t at = 0, after = 0;      // where it begins, and where its first child or the next entry does
  const Abbrev* abbrev = nullptr;  // nullptr: the end of a list of children
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

  // The entry at the reader's position, which is moved past it. False at the unit's end, or where nothing can be read.
  bool Read(base::DwarfReader& reader, Entry& entry) const;
  // The same without its attributes.
  bool Skip(base::DwarfReader& reader, Entry& entry) const;
  // A reader of this unit's entries.
  base::DwarfReader At(uint64_t at) const;

  // "" when the value is no text.
  std::string_view Text(const Value& value) const;
  // By .debug_addr; 0 when it is not there.
  uint64_t Address(uint64_t index) const;
  // Where the list of ranges begins that `value` says; nothing when there is none.
  std::optional<uint64_t> RangeList(const Value& value) const;

  // One value, wherever the reader reads, and as numbers are written there. A kText is in that section.
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
