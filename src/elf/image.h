// A bounded reader of 64-bit little-endian ELF files: header, segments, sections.
//
// The caller hands over the file's bytes and keeps them; nothing is copied but single headers, nothing is allocated,
// no system call is made. Files are hostile: counts and offsets are checked against the bytes on every use, so that a
// lying header yields nothing instead of a read outside. Layouts: System V gABI, chapters 4 and 5; <elf.h>.
//
//   bytes ──Parse──> Image ──segment(i)──> PT_LOAD, PT_NOTE, …     what a running program is mapped by
//                          └─section(i)──> .symtab, .dynsym, …     what linkers and debuggers read; may be stripped
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "src/base/cursor.h"

namespace perfkit::elf {

struct Segment {
  uint32_t type = 0;   // PT_*
  uint32_t flags = 0;  // PF_R, PF_W, PF_X
  uint64_t offset = 0;
  uint64_t address = 0;
  uint64_t file_bytes = 0;
  uint64_t memory_bytes = 0;
  uint64_t alignment = 0;
};

struct Section {
  std::string_view name;  // "" when the name table is missing or damaged
  uint32_t type = 0;      // SHT_*
  uint64_t flags = 0;     // SHF_*
  uint64_t address = 0;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  uint32_t link = 0;
  uint32_t info = 0;
  uint64_t entry_bytes = 0;
};

// The text at `offset` of a string table. Longer ones than any compiler makes count as damaged, so that a file of
// overlapping names costs no square of its size.
std::optional<std::string_view> NameAt(base::Bytes table, uint64_t offset);

// A view: valid as long as the bytes are. Cheap to copy. Any thread.
class Image {
 public:
  // InvalidArgument when `bytes` are no ELF file or its header is damaged; Unimplemented for 32-bit and big-endian
  // files, which this reader does not read.
  static absl::StatusOr<Image> Parse(base::Bytes bytes);

  base::Bytes bytes() const { return bytes_; }
  uint16_t type() const { return type_; }        // ET_EXEC, ET_DYN (shared libraries and PIE programs), …
  uint16_t machine() const { return machine_; }  // EM_X86_64, …

  // How many there are in the file; never more than its bytes hold.
  uint32_t segment_count() const { return segment_count_; }
  uint32_t section_count() const { return section_count_; }

  // Nothing when `index` is too large.
  std::optional<Segment> segment(uint32_t index) const;
  std::optional<Section> section(uint32_t index) const;

  // The first section of that name, or of that type.
  std::optional<Section> FindSection(std::string_view name) const;
  std::optional<Section> FindSectionOfType(uint32_t type) const;

  // What the file holds of a section or segment. Nothing when it lies outside the file, or takes no room in it (.bss).
  std::optional<base::Bytes> Contents(const Section& section) const;
  std::optional<base::Bytes> Contents(const Segment& segment) const;

  // Where in the file the byte lives that is loaded at `address` (before relocation); nothing when none is, as in
  // .bss. `flags`: only segments that have all of these PF_ bits.
  std::optional<uint64_t> FileOffset(uint64_t address, uint32_t flags = 0) const;

 private:
  explicit Image(base::Bytes bytes) : bytes_(bytes) {}
  void CountSegments(uint64_t claimed);
  void CountSections(uint64_t claimed);

  base::Bytes bytes_;
  uint16_t type_ = 0;
  uint16_t machine_ = 0;
  uint64_t segments_at_ = 0;
  uint64_t sections_at_ = 0;
  uint32_t segment_count_ = 0;
  uint32_t section_count_ = 0;
  uint32_t names_index_ = 0;  // the section that holds section names
};

}  // namespace perfkit::elf
