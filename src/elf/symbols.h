// Symbols of an ELF file: the static table (.symtab, often stripped) and the dynamic one (.dynsym, for the loader).
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "src/elf/image.h"

namespace perfkit::elf {

struct Symbol {
  std::string_view name;  // without a version; "" when its place in the string table is damaged
  uint64_t address = 0;   // before relocation
  uint64_t size_bytes = 0;
  uint16_t section = 0;  // SHN_UNDEF: defined elsewhere
  uint8_t type = 0;      // STT_FUNC, STT_OBJECT, STT_GNU_IFUNC, …
  uint8_t binding = 0;   // STB_LOCAL, STB_GLOBAL, STB_WEAK
  // A version that only old programs still ask for (VERSYM_HIDDEN; "name@V" where the default is "name@@V").
  bool old_version = false;

  bool defined() const { return section != 0; }
};

enum class SymbolTable : uint8_t { kStatic, kDynamic };

// Calls `visit` with each symbol but the null one, in the table's order, until it returns false. Never more symbols
// than the file's bytes hold. Whether the file has such a table.
bool ForEachSymbol(const Image& image, SymbolTable table, absl::FunctionRef<bool(const Symbol&)> visit);

}  // namespace perfkit::elf
