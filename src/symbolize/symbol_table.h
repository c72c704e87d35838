// The functions of one module by address. They are flattened to ranges that do not overlap, so that one binary search
// finds the function at an address.
//
//   in symbol tables      aliases, sizes of 0, functions inside of others, in any order
//   flattened             [begin, end) ─> name, in ascending order, without overlaps
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perfkit::symbolize {

// The binding of a symbol, weakest first. Of two names for one address, the stronger one is used.
enum class Binding : uint8_t { kWeak, kLocal, kGlobal };

// Immutable; thread-safe.
class SymbolTable {
 public:
  struct Found {
    std::string_view name;  // Valid as long as the table.
    uint64_t begin = 0;     // The first address of the function.
  };

  // Returns the function that contains `address`, or nullopt. If several contain it, returns the one that begins last.
  std::optional<Found> Find(uint64_t address) const;

  // Returns the number of ranges that have a name.
  size_t size() const { return pieces_.size(); }

 private:
  friend class SymbolTableBuilder;
  struct Piece {
    uint64_t begin, end;      // Of the range.
    uint64_t function_begin;  // The first address of the range's function.
    uint32_t name_at, name_size;
  };
  std::vector<Piece> pieces_;
  std::string names_;
};

// Collects symbols in any order, then builds the table. Its memory is bounded by the size of the names.
class SymbolTableBuilder {
 public:
  // `max_name_bytes` is the maximum size of all names together, so that a file whose symbols share one long name does
  // not take quadratic memory. Further symbols are omitted.
  explicit SymbolTableBuilder(uint64_t max_name_bytes);

  // Adds a function. If its size is 0, it is unknown: the function then ends where the next one begins, and is omitted
  // if it lies inside of one with a known size. Returns false if there is no more room for names.
  bool Add(std::string_view name, uint64_t begin, uint64_t size, Binding binding);

  // Adds an end of code: functions of unknown size end there at the latest.
  void AddBound(uint64_t address) { bounds_.push_back(address); }

  // Builds the table. Call it once.
  SymbolTable Build() &&;

 private:
  struct Entry {
    uint64_t begin, end;  // Equal to begin if the size is unknown.
    uint32_t name_at, name_size;
    Binding binding;
  };
  std::string_view NameOf(const Entry& entry) const {
    return std::string_view(names_).substr(entry.name_at, entry.name_size);
  }
  // Returns true if a's name is preferred for an address that both have.
  bool IsBetter(const Entry& a, const Entry& b) const;
  // Keeps one entry for each address.
  void MergeAliases();
  // Ends or removes the entries of unknown size.
  void EndOpenOnes();

  uint64_t max_name_bytes_;
  std::vector<Entry> entries_;
  std::vector<uint64_t> bounds_;
  std::string names_;
};

}  // namespace perfkit::symbolize
