// A cache of decoded units with a maximum size, which drops the least recently used ones.
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

// A unit, and its parts that were decoded so far.
struct LoadedUnit {
  explicit LoadedUnit(Unit read) : unit(std::move(read)) {}
  Unit unit;
  std::optional<FunctionIndex> functions;
  std::optional<LineTable> lines;
  std::vector<std::optional<std::string_view>> paths;  // By file number.
};

// Not thread-safe.
class UnitCache {
 public:
  explicit UnitCache(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Takes ownership of a unit. `slot` points to it until it is dropped, and is null after that.
  LoadedUnit* Add(Unit unit, size_t bytes, LoadedUnit*& slot);
  // Marks a unit as used now, and adds `more_bytes` to its size.
  void Use(LoadedUnit& unit, size_t more_bytes = 0);
  // Drops units until the others fit, but never the last one that was used. Invalidates all pointers to dropped units.
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
