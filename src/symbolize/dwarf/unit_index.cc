// Indexes the units of a module. GCC writes .debug_aranges for each unit with code, clang for none. For units that are
// not in it, the root entry is read.
#include "src/symbolize/dwarf/unit_index.h"

#include <dwarf.h>

#include <memory>
#include <unordered_map>

#include "src/symbolize/dwarf/ranges.h"

namespace perfkit::symbolize::dwarf {
namespace {

// Reads one set of .debug_aranges (DWARF 5, 6.1.2): a unit, then pairs of address and length, aligned to the size of a
// pair. Returns the index of the unit; units.size() if there is none.
size_t ReadSet(const DebugInfo& info, base::DwarfReader& reader, base::FlatRanges& ranges) {
  const uint64_t set_at = reader.at();
  uint32_t offset_bytes = 0;
  const uint64_t length = reader.InitialLength(&offset_bytes);
  base::DwarfReader set = reader;
  reader.Skip(length);
  if (!reader.ok()) return info.units.size();
  set.EndAt(reader.at());
  const uint16_t version = set.U16();
  const uint64_t unit_at = set.Sized(offset_bytes);
  const uint8_t address_bytes = set.U8(), selector_bytes = set.U8();
  const size_t unit = info.UnitAt(unit_at);
  if (version != 2 || address_bytes != 8 || selector_bytes != 0 || unit == info.units.size()) return info.units.size();
  // To the next multiple of the size of a pair, counted from the begin of the set.
  set.Skip((16 - (set.at() - set_at) % 16) % 16);
  while (!set.done()) {
    const uint64_t begin = set.U64(), size = set.U64();
    if (!set.ok() || (begin == 0 && size == 0)) break;
    if (begin != 0 && size <= ~begin) ranges.Add(begin, begin + size, static_cast<uint32_t>(unit));
  }
  return unit;
}

// Tables of abbreviations, each read once. Those of valid files do not overlap, so together they do not exceed their
// section. In a damaged file each unit may refer to another offset of the same table; then reading stops early.
class Tables {
 public:
  explicit Tables(base::Bytes section) : section_(section), budget_(2 * section.size()) {}

  // Returns nullptr if too many bytes were read.
  std::shared_ptr<const AbbrevTable> Find(const UnitHeader& header) {
    std::shared_ptr<const AbbrevTable>& table = tables_[header.abbrevs_at];
    if (table != nullptr && table->format() == header.format) return table;
    auto read = std::make_shared<AbbrevTable>(section_, header.abbrevs_at, header.format);
    if (read->section_bytes() > budget_) return nullptr;
    budget_ -= read->section_bytes();
    return table = std::move(read);
  }

 private:
  base::Bytes section_;
  uint64_t budget_;
  std::unordered_map<uint64_t, std::shared_ptr<const AbbrevTable>> tables_;
};

}  // namespace

base::FlatRanges IndexUnits(const DebugInfo& info, const DebugInfo* shared) {
  base::FlatRanges ranges;
  std::vector<bool> listed(info.units.size() + 1);
  for (base::DwarfReader reader(info.sections.aranges); !reader.done();) listed[ReadSet(info, reader, ranges)] = true;
  Tables tables(info.sections.abbrev);
  for (size_t i = 0; i < info.units.size(); ++i) {
    const UnitHeader& header = info.units[i];
    if (listed[i] || (header.type != DW_UT_compile && header.type != DW_UT_skeleton)) continue;
    auto abbrevs = tables.Find(header);
    if (abbrevs == nullptr) break;
    const Unit unit(info, shared, header, std::move(abbrevs));
    RangeBudget budget(unit);
    ForEachRange(unit, unit.root(), budget, [&](uint64_t begin, uint64_t end) {
      ranges.Add(begin, end, static_cast<uint32_t>(i));
      return true;
    });
  }
  // If many files define a function (templates, inline functions), the linker keeps the first copy, but the debug
  // information of all others refers to it, too. Only the first unit has the code that was compiled there.
  ranges.Build(base::FlatRanges::Ties::kSmallest);
  return ranges;
}

}  // namespace perfkit::symbolize::dwarf
