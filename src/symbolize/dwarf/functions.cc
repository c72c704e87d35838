// Walks a unit's entries with a counter of levels instead of recursion, so that deep nesting needs no stack. Entries
// are stored one after the other, each before its children; an empty entry ends a list of children.
#include "src/symbolize/dwarf/functions.h"

#include <dwarf.h>

#include "src/symbolize/dwarf/ranges.h"

namespace perfkit::symbolize::dwarf {
namespace {

// Returns true for entries with children that contain no functions.
bool HoldsNoCode(uint16_t tag) {
  switch (tag) {
    case DW_TAG_enumeration_type:
    case DW_TAG_subroutine_type:
    case DW_TAG_array_type:
    case DW_TAG_GNU_formal_parameter_pack:
    case DW_TAG_GNU_template_parameter_pack:
    case DW_TAG_call_site:
    case DW_TAG_GNU_call_site: return true;
    default: return false;
  }
}

}  // namespace

// Functions may be in namespaces, classes, other functions (Fortran, Ada, GNU C) and abstract functions. So each entry
// is visited, but only those of functions with code are read. An entry without code that has the position of its next
// sibling is skipped with all its children.
FunctionIndex::FunctionIndex(const Unit& unit) {
  RangeBudget budget(unit);
  base::DwarfReader reader = unit.At(unit.header().entries_at);
  Entry entry;
  for (int64_t level = 0;;) {
    const base::DwarfReader before = reader;
    if (!unit.Skip(reader, entry)) break;
    if (entry.abbrev == nullptr) {
      if (--level <= 0) break;
      continue;
    }
    const bool function = entry.abbrev->tag == DW_TAG_subprogram && entry.abbrev->code;
    const bool pass_over = entry.abbrev->children && entry.abbrev->sibling && HoldsNoCode(entry.abbrev->tag);
    if (function || pass_over) {
      reader = before;
      unit.Read(reader, entry);
    }
    if (function) {
      const auto id = static_cast<uint32_t>(functions_.size());
      bool has_code = false;
      ForEachRange(unit, entry, budget, [&](uint64_t begin, uint64_t end) {
        ranges_.Add(begin, end, id);
        return has_code = true;
      });
      if (has_code) functions_.push_back({.entry = entry.at, .name = {}});
    }
    if (pass_over && entry.sibling.kind == Value::Kind::kEntry && entry.sibling.number > entry.after) {
      reader = unit.At(entry.sibling.number);
    } else if (entry.abbrev->children) {
      ++level;
    } else if (level == 0) {
      break;
    }
  }
  functions_.shrink_to_fit();
  ranges_.Build();
}

// `inside` has the current call for each level.
void FunctionIndex::ReadInlined(const Unit& unit, Function& function) {
  function.inlined_known = true;
  function.first_call = static_cast<uint32_t>(calls_.size());
  function.first_range = static_cast<uint32_t>(inlined_ranges_.size());
  RangeBudget budget(unit);
  base::FlatRanges ranges;
  base::DwarfReader reader = unit.At(function.entry);
  Entry entry;
  std::vector<uint32_t> inside;
  while (true) {
    const base::DwarfReader before = reader;
    if (!unit.Skip(reader, entry)) break;
    if (entry.abbrev == nullptr) {
      if (inside.size() <= 1) break;
      inside.pop_back();
      continue;
    }
    uint32_t parent = inside.empty() ? kNone : inside.back();
    if (entry.abbrev->tag == DW_TAG_inlined_subroutine) {
      reader = before;
      unit.Read(reader, entry);
      const auto id = static_cast<uint32_t>(calls_.size());
      calls_.push_back({.entry = entry.at,
                        .parent = parent,
                        .file = static_cast<uint32_t>(entry.file.number),
                        .line = static_cast<uint32_t>(entry.line.number),
                        .column = static_cast<uint32_t>(entry.column.number),
                        .name = {}});
      ForEachRange(unit, entry, budget, [&](uint64_t begin, uint64_t end) {
        ranges.Add(begin, end, id);
        return true;
      });
      parent = id;
    }
    if (entry.abbrev->children) {
      inside.push_back(parent);
    } else if (inside.empty()) {
      break;
    }
  }
  ranges.Build();
  function.ranges = static_cast<uint32_t>(ranges.ranges().size());
  inlined_ranges_.insert(inlined_ranges_.end(), ranges.ranges().begin(), ranges.ranges().end());
}

}  // namespace perfkit::symbolize::dwarf
