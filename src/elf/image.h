// A bounded reader of 64-bit little-endian ELF files: header, segments, sections.
//
// The caller owns the file's bytes. Only single headers are copied; nothing is allocated, and no system call is made.
// Files may be hostile: each use checks counts and offsets against the bytes, so a false header gives nullopt instead
// of a read outside of the file. Layouts: System V gABI, chapters 4 and 5; <elf.h>.
//
//   bytes ──Parse──> Image ──segment(i)──> PT_LOAD, PT_NOTE, …     what the loader maps
//                          └─section(i)──> .symtab, .dynsym, …     what linkers and debuggers read; may be stripped
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "src/base/cursor.h"

namespace perfkit::elf {

// A program header, with addresses before relocation. Positions and sizes are in bytes.
struct Segment {
  uint32_t type = 0;   // PT_*
  uint32_t flags = 0;  // PF_R, PF_W, PF_X
  uint64_t offset = 0;
  uint64_t address = 0;
  uint64_t file_bytes = 0;
  uint64_t memory_bytes = 0;
  uint64_t alignment = 0;
};

// A section header, with addresses before relocation. Positions and sizes are in bytes.
struct Section {
  std::string_view name;  // "" if the name table is missing or damaged.
  uint32_t type = 0;      // SHT_*
  uint64_t flags = 0;     // SHF_*
  uint64_t address = 0;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  uint32_t link = 0;
  uint32_t info = 0;
  uint64_t entry_bytes = 0;
};

// Returns the text at `offset` of a string table. Returns nullopt if it has no NUL, or exceeds 64 KiB: no compiler
// makes such names, and reading a file of overlapping long ones would take quadratic time.
std::optional<std::string_view> NameAt(base::Bytes table, uint64_t offset);

// An ELF file. A view: valid as long as the bytes. Cheap to copy. Thread-safe to read.
class Image {
 public:
  // Errors: InvalidArgument if `bytes` are not an ELF file or its header is damaged; Unimplemented for 32-bit and
  // big-endian files.
  static absl::StatusOr<Image> Parse(base::Bytes bytes);

  base::Bytes bytes() const { return bytes_; }
  uint16_t type() const { return type_; }        // ET_EXEC, ET_DYN (shared libraries and PIE programs), …
  uint16_t machine() const { return machine_; }  // EM_X86_64, …
  uint64_t entry() const { return entry_; }      // The address of the first instruction, before relocation; 0 if none.

  // The number of headers in the file. Never more than its bytes hold, whatever the ELF header says.
  uint32_t segment_count() const { return segment_count_; }
  uint32_t section_count() const { return section_count_; }

  // Return nullopt if `index` is too large.
  std::optional<Segment> segment(uint32_t index) const;
  std::optional<Section> section(uint32_t index) const;

  // Return the first section of that name or type, or nullopt.
  std::optional<Section> FindSection(std::string_view name) const;
  std::optional<Section> FindSectionOfType(uint32_t type) const;

  // Return the bytes of a section or segment in the file. Return nullopt if they exceed the file, or if the section has
  // no bytes in it (.bss).
  std::optional<base::Bytes> Contents(const Section& section) const;
  std::optional<base::Bytes> Contents(const Segment& segment) const;

  // Returns the file's offset of the byte that is loaded at `address` (before relocation), or nullopt if the file has
  // no such byte, as in .bss. Considers only segments that have all of the PF_ bits `flags`.
  std::optional<uint64_t> FileOffset(uint64_t address, uint32_t flags = 0) const;

 private:
  explicit Image(base::Bytes bytes) : bytes_(bytes) {}
  // Set the number of headers: `claimed`, or as many as the file has room for. CountSegments needs the sections.
  void CountSegments(uint64_t claimed);
  void CountSections(uint64_t claimed);

  base::Bytes bytes_;
  uint16_t type_ = 0;
  uint16_t machine_ = 0;
  uint64_t entry_ = 0;
  uint64_t segments_at_ = 0;  // Offset in the file.
  uint64_t sections_at_ = 0;
  uint32_t segment_count_ = 0;
  uint32_t section_count_ = 0;
  uint32_t names_index_ = 0;  // Index of the section of section names.
};

}  // namespace perfkit::elf
