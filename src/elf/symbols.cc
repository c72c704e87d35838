// Reads symbol tables.
#include "src/elf/symbols.h"

#include <elf.h>

#include <optional>

#include "src/base/text.h"

namespace perfkit::elf {
namespace {

// The high bit of an entry of .gnu.version (binutils, include/elf/common.h: VERSYM_HIDDEN).
constexpr uint16_t kVersionHidden = 0x8000;

// Static tables have the version in the name ("puts@GLIBC_2.2.5"); dynamic ones have it in .gnu.version.
std::string_view NameOf(const Elf64_Sym& entry, base::Bytes names) {
  return base::Cut(NameAt(names, entry.st_name).value_or(std::string_view()), '@').first;
}

Symbol FromEntry(const Elf64_Sym& entry, base::Bytes names) {
  return {.name = NameOf(entry, names),
          .address = entry.st_value,
          .size_bytes = entry.st_size,
          .section = entry.st_shndx,
          .type = static_cast<uint8_t>(ELF64_ST_TYPE(entry.st_info)),
          .binding = static_cast<uint8_t>(ELF64_ST_BIND(entry.st_info)),
          .old_version = false};
}

// Returns .gnu.version: 16 bits for each dynamic symbol. Empty if the file has none.
base::Bytes VersionsOf(const Image& image, SymbolTable table) {
  if (table != SymbolTable::kDynamic) return {};
  const std::optional<Section> section = image.FindSectionOfType(SHT_GNU_versym);
  if (!section) return {};
  return image.Contents(*section).value_or(base::Bytes());
}

// Returns false if there is no version table, or if it is too short.
bool IsOldVersion(base::Bytes versions, uint64_t index) {
  const auto version = base::ReadAt<uint16_t>(versions, index * sizeof(uint16_t));
  return version && (*version & kVersionHidden) != 0;
}

}  // namespace

// The number of symbols follows from the section's bytes, which Contents has checked.
bool ForEachSymbol(const Image& image, SymbolTable table, absl::FunctionRef<bool(const Symbol&)> visit) {
  const std::optional<Section> section =
      image.FindSectionOfType(table == SymbolTable::kStatic ? SHT_SYMTAB : SHT_DYNSYM);
  if (!section || section->entry_bytes != sizeof(Elf64_Sym)) return false;
  const std::optional<base::Bytes> entries = image.Contents(*section);
  const std::optional<Section> names_section = image.section(section->link);
  if (!entries || !names_section) return false;
  const base::Bytes names = image.Contents(*names_section).value_or(base::Bytes());
  const base::Bytes versions = VersionsOf(image, table);
  for (uint64_t i = 1; i < entries->size() / sizeof(Elf64_Sym); ++i) {
    const auto entry = base::ReadAt<Elf64_Sym>(*entries, i * sizeof(Elf64_Sym));
    if (!entry) break;
    Symbol symbol = FromEntry(*entry, names);
    symbol.old_version = IsOldVersion(versions, i);
    if (!visit(symbol)) break;
  }
  return true;
}

}  // namespace perfkit::elf
