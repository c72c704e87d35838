// Abbreviations: the shapes of entries, which each entry names by a number (DWARF 5, 7.5.3).
#pragma once

#include <cstdint>
#include <vector>

#include "src/base/cursor.h"

namespace perfkit::symbolize::dwarf {

// How numbers of a unit are written.
struct Format {
  uint16_t version = 0;
  uint8_t address_bytes = 8, offset_bytes = 4;
  bool operator==(const Format&) const = default;
};

struct AttributeSpec {
  uint16_t attribute = 0;  // DW_AT_
  uint16_t form = 0;       // DW_FORM_
  int64_t constant = 0;    // of DW_FORM_implicit_const
};

struct Abbrev {
  static constexpr uint32_t kVaries = ~0u;
  uint16_t tag = 0;  // DW_TAG_; 0: there is no such abbreviation
  bool children = false;
  bool sibling = false;           // one attribute says where the next entry of this level is
  bool code = false;              // one says where code is
  uint32_t first = 0, count = 0;  // its attributes, in the table's list
  uint32_t bytes = 0;             // of all of its attributes, or kVaries
};

// One table. Immutable. Its memory is bounded by the bytes that it is read from.
class AbbrevTable {
 public:
  AbbrevTable() = default;
  AbbrevTable(base::Bytes section, uint64_t at, Format format);

  // nullptr when there is none of this number.
  const Abbrev* Find(uint64_t code) const;
  const AttributeSpec* attributes(const Abbrev& abbrev) const { return specs_.data() + abbrev.first; }
  Format format() const { return format_; }
  uint64_t section_bytes() const { return section_bytes_; }  // that it was read from
  size_t bytes() const;

 private:
  struct Sparse {
    uint64_t code;
    Abbrev abbrev;
  };
  std::vector<Abbrev> dense_;  // of code i + 1: compilers count from 1
  std::vector<Sparse> sparse_;
  std::vector<AttributeSpec> specs_;
  Format format_;
  uint64_t section_bytes_ = 0;
};

// Bytes of a value of this form; Abbrev::kVaries when the value says so itself, or the form is unknown.
uint32_t FormBytes(uint16_t form, Format format);

}  // namespace perfkit::symbolize::dwarf
