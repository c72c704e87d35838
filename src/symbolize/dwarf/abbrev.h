// Abbreviations: the tag and the attributes of entries. Each entry refers to one by its code (DWARF 5, 7.5.3).
#pragma once

#include <cstdint>
#include <vector>

#include "src/base/cursor.h"

namespace perfkit::symbolize::dwarf {

// The encoding of a unit's numbers.
struct Format {
  uint16_t version = 0;
  uint8_t address_bytes = 8, offset_bytes = 4;
  bool operator==(const Format&) const = default;
};

struct AttributeSpec {
  uint16_t attribute = 0;  // DW_AT_
  uint16_t form = 0;       // DW_FORM_
  int64_t constant = 0;    // The value for DW_FORM_implicit_const.
};

struct Abbrev {
  static constexpr uint32_t kVaries = ~0u;
  uint16_t tag = 0;  // DW_TAG_*; 0 means that there is no such abbreviation.
  bool children = false;
  bool sibling = false;           // Has an attribute with the next entry of the same level.
  bool code = false;              // Has an attribute with a range of code.
  uint32_t first = 0, count = 0;  // Its attributes in the table's list.
  uint32_t bytes = 0;             // The size of all its attributes, or kVaries.
};

// One table of abbreviations. Immutable. Its memory is bounded by the size of its section.
class AbbrevTable {
 public:
  AbbrevTable() = default;
  AbbrevTable(base::Bytes section, uint64_t at, Format format);

  // Returns nullptr if there is no abbreviation of this code.
  const Abbrev* Find(uint64_t code) const;
  const AttributeSpec* attributes(const Abbrev& abbrev) const { return specs_.data() + abbrev.first; }
  Format format() const { return format_; }
  uint64_t section_bytes() const { return section_bytes_; }  // The bytes of the section that the table takes.
  size_t bytes() const;

 private:
  struct Sparse {
    uint64_t code;
    Abbrev abbrev;
  };
  std::vector<Abbrev> dense_;   // Index i is code i + 1: compilers number from 1.
  std::vector<Sparse> sparse_;  // Codes that are not consecutive, sorted.
  std::vector<AttributeSpec> specs_;
  Format format_;
  uint64_t section_bytes_ = 0;
};

// Returns the size of a value in this form; Abbrev::kVaries if it depends on the value, or if the form is unknown.
uint32_t FormBytes(uint16_t form, Format format);

}  // namespace perfkit::symbolize::dwarf
