// Names by address: the functions of one module, flattened so that one binary search finds the one at an address.
//
//   as linkers write them      aliases, sizes of 0, one inside another, in any order
//   flattened                  [begin, end) ─> name, in rising order, none over another
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perfkit::symbolize {

// How a symbol is bound, weakest first: of two names for one address the stronger one is taken.
enum class Binding : uint8_t { kWeak, kLocal, kGlobal };

// Immutable. Any thread.
class SymbolTable {
 public:
  struct Found {
    std::string_view name;  // as long-lived as the table
    uint64_t begin = 0;     // of the function
  };

  // The function that `address` lies in; of several that reach over it, the one that begins last.
  std::optional<Found> Find(uint64_t address) const;

  // How many pieces of code have a name.
  size_t size() const { return pieces_.size(); }

 private:
  friend class SymbolTableBuilder;
  struct Piece {
    uint64_t begin, end;      // of the piece
    uint64_t function_begin;  // of the function that it is a piece of
    uint32_t name_at, name_size;
  };
  std::vector<Piece> pieces_;
  std::string names_;
};

// Takes symbols in any order, then makes the table. Memory is bounded by the bytes of names that it was given.
class SymbolTableBuilder {
 public:
  // At most so many bytes of names, so that a file whose symbols share one long name cannot ask for a square of its
  // size. Symbols after that are left out.
  explicit SymbolTableBuilder(uint64_t max_name_bytes);

  // A function. A size of 0 means that nobody said: it then reaches to whatever comes next, unless another one that
  // knows its size reaches over it. False when there is no more room.
  bool Add(std::string_view name, uint64_t begin, uint64_t size, Binding binding);

  // Where code ends: a function of unknown size reaches no further.
  void AddBound(uint64_t address) { bounds_.push_back(address); }

  SymbolTable Build() &&;

 private:
  struct Entry {
    uint64_t begin, end;  // end == begin: unknown
    uint32_t name_at, name_size;
    Binding binding;
  };
  std::string_view NameOf(const Entry& entry) const {
    return std::string_view(names_).substr(entry.name_at, entry.name_size);
  }
  bool IsBetter(const Entry& a, const Entry& b) const;
  void MergeAliases();
  void EndOpenOnes();

  uint64_t max_name_bytes_;
  std::vector<Entry> entries_;
  std::vector<uint64_t> bounds_;
  std::string names_;
};

}  // namespace perfkit::symbolize
