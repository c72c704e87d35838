// Reads .debug_ranges (DWARF 4, 2.17.3) and .debug_rnglists (DWARF 5, 2.17.3 and 7.25): both are lists of ranges with a
// base that entries of the list may change. It begins as the unit's low_pc.
#include "src/symbolize/dwarf/ranges.h"

#include <dwarf.h>

namespace perfkit::symbolize::dwarf {
namespace {

using Visit = absl::FunctionRef<bool(uint64_t, uint64_t)>;

bool Give(uint64_t begin, uint64_t end, Visit visit) { return begin == 0 || begin >= end || visit(begin, end); }

// Reads pairs relative to a base. A pair whose first number is all ones sets the base; a pair of zeros ends the list.
void ReadPairs(const Unit& unit, uint64_t at, RangeBudget& budget, Visit visit) {
  base::DwarfReader reader(unit.sections().ranges, at);
  uint64_t base = unit.low_pc();
  while (reader.ok() && budget.left > 0) {
    --budget.left;
    const uint64_t begin = reader.U64(), end = reader.U64();
    if (!reader.ok() || (begin == 0 && end == 0)) return;
    if (begin == ~uint64_t{0}) {
      base = end;
    } else if (begin != end && !Give(base + begin, base + end, visit)) {
      return;
    }
  }
}

struct Pair {
  uint64_t begin = 0, end = 0;
};

// Reads one entry of a list. Returns an empty range if it only sets the base.
Pair ReadListEntry(const Unit& unit, uint8_t kind, base::DwarfReader& reader, uint64_t& base) {
  switch (kind) {
    case DW_RLE_base_addressx: return base = unit.Address(reader.Uleb()), Pair{};
    case DW_RLE_base_address: return base = reader.U64(), Pair{};
    case DW_RLE_startx_endx: {
      const uint64_t begin = unit.Address(reader.Uleb());
      return {begin, unit.Address(reader.Uleb())};
    }
    case DW_RLE_startx_length: {
      const uint64_t begin = unit.Address(reader.Uleb());
      return {begin, begin + reader.Uleb()};
    }
    case DW_RLE_offset_pair: {
      const uint64_t begin = base + reader.Uleb();
      return {begin, base + reader.Uleb()};
    }
    case DW_RLE_start_end: {
      const uint64_t begin = reader.U64();
      return {begin, reader.U64()};
    }
    case DW_RLE_start_length: {
      const uint64_t begin = reader.U64();
      return {begin, begin + reader.Uleb()};
    }
    default: return reader.Skip(~uint64_t{0}), Pair{};
  }
}

void ReadList(const Unit& unit, uint64_t at, RangeBudget& budget, Visit visit) {
  base::DwarfReader reader(unit.sections().rnglists, at);
  uint64_t base = unit.low_pc();
  while (const uint8_t kind = reader.U8()) {
    if (budget.left-- == 0) return static_cast<void>(budget.left = 0);
    const Pair pair = ReadListEntry(unit, kind, reader, base);
    if (!reader.ok() || (pair.begin != pair.end && !Give(pair.begin, pair.end, visit))) return;
  }
}

}  // namespace

void ForEachRange(const Unit& unit, const Entry& entry, RangeBudget& budget, Visit visit) {
  if (const std::optional<uint64_t> list = unit.RangeList(entry.ranges)) {
    return unit.header().format.version >= 5 ? ReadList(unit, *list, budget, visit)
                                             : ReadPairs(unit, *list, budget, visit);
  }
  if (entry.low.kind != Value::Kind::kAddress || !entry.high.known()) return;
  const bool is_end = entry.high.kind == Value::Kind::kAddress;
  Give(entry.low.number, is_end ? entry.high.number : entry.low.number + entry.high.number, visit);
}

}  // namespace perfkit::symbolize::dwarf
