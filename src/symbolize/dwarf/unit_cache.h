// What was decoded of units, with a bound on its memory: the units that were used least recently are given up.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "src/symbolize/dwarf/functions.h"
#include "src/symbolize/dwarf/line_table.h"
#include "src/symbolize/dwarf/unit.h"

namespace perfkit::symbolize::dwarf {

// A unit, and what was asked of it so far.
struct LoadedUnit {
  explicit LoadedUnit(Unit read) : unit(std::move(read)) {}
  Unit unit;
  std::optional<FunctionIndex> functions;
  std::optional<LineTable> lines;
  std::vector<std::optional<std::string_view>> paths;  // by file number
};

// For one thread at a time.
class UnitCache {
 public:
  explicit UnitCache(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Takes over a unit; `slot` points to it until it is given up, then it is null.
  LoadedUnit* Add(Unit unit, size_t bytes, LoadedUnit*& slot);
  // It is used now, and holds so many more bytes than before.
  void Use(LoadedUnit& unit, size_t more_bytes = 0);
  // Gives up units until what is left fits, but never the last one that was used. No pointer to another one holds then.
  void Trim();

  size_t bytes() const { return bytes_; }
  size_t units() const { return held_.size(); }

 private:
  struct Held : LoadedUnit {
    Held(Unit read, LoadedUnit** owner) : LoadedUnit(std::move(read)), slot(owner) {}
    LoadedUnit** slot;
    size_t bytes = 0;
    uint64_t used = 0;
  };

  size_t max_bytes_, bytes_ = 0;
  uint64_t uses_ = 0;
  std::vector<std::unique_ptr<Held>> held_;
};

}  // namespace perfkit::symbolize::dwarf
