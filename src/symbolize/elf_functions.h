// The functions of an ELF file, from its symbol tables and its procedure linkage table (PLT).
#pragma once

#include "src/elf/image.h"
#include "src/symbolize/symbol_table.h"

namespace perfkit::symbolize {

// Adds the functions of the static and the dynamic table of `image`, with addresses before relocation. Returns true if
// there is a static table; without one the file was stripped, and its private functions have no names.
bool AddFunctions(const elf::Image& image, SymbolTableBuilder& builder);

// Adds "name@plt" for each PLT stub, by which `image` calls functions of other modules. Only for x86-64.
void AddPltStubs(const elf::Image& image, SymbolTableBuilder& builder);

}  // namespace perfkit::symbolize
