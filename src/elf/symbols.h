// The symbols of an ELF file: the static table (.symtab, often stripped) and the dynamic one (.dynsym, used by the
// loader).
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "src/elf/image.h"

namespace perfkit::elf {

struct Symbol {
  std::string_view name;  // Without its version; "" if the string table is damaged.
  uint64_t address = 0;   // Before relocation.
  uint64_t size_bytes = 0;
  uint16_t section = 0;  // SHN_UNDEF means defined in another file.
  uint8_t type = 0;      // STT_FUNC, STT_OBJECT, STT_GNU_IFUNC, ….
  uint8_t binding = 0;   // STB_LOCAL, STB_GLOBAL, STB_WEAK.
  // A hidden version, which only programs linked against an old library use (VERSYM_HIDDEN: "name@V" beside the default
  // "name@@V").
  bool old_version = false;

  bool defined() const { return section != 0; }
};

enum class SymbolTable : uint8_t { kStatic, kDynamic };

// Calls `visit` for each symbol except the null symbol, in the table's order, until it returns false. Returns false if
// the file does not have that table.
bool ForEachSymbol(const Image& image, SymbolTable table, absl::FunctionRef<bool(const Symbol&)> visit);

}  // namespace perfkit::elf
