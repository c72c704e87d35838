// Finds the sections of call frame information of a module: .eh_frame with its search table, and .debug_frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/dwarf_reader.h"
#include "src/elf/image.h"

namespace perfkit::unwind {

struct CfiSection {
  base::Bytes bytes;            // May exceed the records, if the section's size is not known.
  uint64_t address = 0;         // The address of the first byte, before relocation.
  bool is_eh = false;           // .eh_frame: pointers are encoded, and the format of records differs a little.
  base::Bytes header;           // .eh_frame_hdr; empty if there is none.
  uint64_t header_address = 0;  // The base of DW_EH_PE_datarel.
};

// Finds .eh_frame by the program header PT_GNU_EH_FRAME, which files without section headers have, too; in files
// without it, by the section's name.
std::optional<CfiSection> FindEhFrame(const elf::Image& image);

// Returns true if the file has a .debug_frame, compressed or not.
bool HasDebugFrame(const elf::Image& image);
// Finds .debug_frame. If it is compressed, `storage` gets the bytes, and must outlive the result.
std::optional<CfiSection> FindDebugFrame(const elf::Image& image, std::vector<std::byte>& storage);

// Reads a pointer in one of the encodings of the Linux Standard Base (Core 5.0, 10.5: DW_EH_PE_*). Returns nullopt for
// encodings that linkers do not use in these records: relative to the text or the function, aligned, indirect.
std::optional<uint64_t> ReadPointer(base::DwarfReader& reader, uint8_t encoding, const CfiSection& section);

// As above, for a pointer at `address` that is not in a section.
std::optional<uint64_t> ReadPointerAt(base::DwarfReader& reader, uint8_t encoding, uint64_t address,
                                      uint64_t data_base);

}  // namespace perfkit::unwind
