// The functions of an ELF file, as its symbol tables and its procedure linkage table tell them.
#pragma once

#include "src/elf/image.h"
#include "src/symbolize/symbol_table.h"

namespace perfkit::symbolize {

// Adds what the static and the dynamic table of `image` say, at addresses before relocation. Whether there is a static
// table: without one the file was stripped, and its private functions have no names.
bool AddFunctions(const elf::Image& image, SymbolTableBuilder& builder);

// Adds "name@plt" for each stub through which `image` calls functions of other modules. x86-64 only: of other machines
// the stubs have no name.
void AddPltStubs(const elf::Image& image, SymbolTableBuilder& builder);

}  // namespace perfkit::symbolize
