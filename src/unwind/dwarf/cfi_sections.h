// Where a module keeps its call frame information: .eh_frame with its search table, and .debug_frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/dwarf_reader.h"
#include "src/elf/image.h"

namespace perfkit::unwind {

struct CfiSection {
  base::Bytes bytes;            // may end later than the records do, where nothing says how long they are
  uint64_t address = 0;         // of the first byte, in the module
  bool is_eh = false;           // .eh_frame: pointers are encoded, and the records' own format differs a little
  base::Bytes header;           // .eh_frame_hdr; empty without
  uint64_t header_address = 0;  // what DW_EH_PE_datarel counts from
};

// By the program header PT_GNU_EH_FRAME, which files without section headers have too and which is right whatever the
// order of sections; by the section's name for files without it.
std::optional<CfiSection> FindEhFrame(const elf::Image& image);

// Whether there is something to be found by the next one, in whatever form.
bool HasDebugFrame(const elf::Image& image);
// `storage` gets the bytes where the file has them compressed, and must live as long as the result is used.
std::optional<CfiSection> FindDebugFrame(const elf::Image& image, std::vector<std::byte>& storage);

// A pointer in one of the encodings of the Linux Standard Base (Core 5.0, 10.5: DW_EH_PE_*). Nothing for those that no
// linker writes into records of code: relative to the text, to the function, aligned, or indirect.
std::optional<uint64_t> ReadPointer(base::DwarfReader& reader, uint8_t encoding, const CfiSection& section);

// The same for a pointer that lies elsewhere: at `address`.
std::optional<uint64_t> ReadPointerAt(base::DwarfReader& reader, uint8_t encoding, uint64_t address,
                                      uint64_t data_base);

}  // namespace perfkit::unwind
