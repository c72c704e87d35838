// Reads the functions of symbol tables: those that lie in sections with code. The ends of such sections are bounds for
// functions of unknown size, as code never reaches beyond its section.
#include "src/symbolize/elf_functions.h"

#include <elf.h>

#include <vector>

#include "src/elf/symbols.h"

namespace perfkit::symbolize {
namespace {

// Returns which sections contain code, by index, and adds the ends of those sections as bounds.
std::vector<bool> CodeSections(const elf::Image& image, SymbolTableBuilder& builder) {
  std::vector<bool> code(image.section_count());
  for (uint32_t i = 0; i < image.section_count(); ++i) {
    const std::optional<elf::Section> section = image.section(i);
    code[i] = section && (section->flags & SHF_EXECINSTR) != 0;
    if (code[i] && section->size_bytes <= UINT64_MAX - section->address) {
      builder.AddBound(section->address + section->size_bytes);
    }
  }
  return code;
}

// Assemblers omit the type if the source has none. Names that begin with '.' or '$' are labels of compilers and
// assemblers ("$x" of the ARM ELF ABI, ".L…", ".annobin…"), not functions.
bool IsCode(const elf::Symbol& symbol, const std::vector<bool>& code_sections) {
  if (symbol.name.empty() || symbol.section >= code_sections.size() || !code_sections[symbol.section]) return false;
  if (symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC) return true;
  return symbol.type == STT_NOTYPE && symbol.name.front() != '.' && symbol.name.front() != '$';
}

Binding BindingOf(const elf::Symbol& symbol) {
  if (symbol.binding == STB_WEAK) return Binding::kWeak;
  return symbol.binding == STB_LOCAL ? Binding::kLocal : Binding::kGlobal;
}

}  // namespace

bool AddFunctions(const elf::Image& image, SymbolTableBuilder& builder) {
  const std::vector<bool> code = CodeSections(image, builder);
  const auto add = [&](const elf::Symbol& symbol) {
    if (!symbol.defined() || !IsCode(symbol, code)) return true;
    return builder.Add(symbol.name, symbol.address, symbol.size_bytes, BindingOf(symbol));
  };
  // Both tables: a separate debug file has the static one only, a stripped file the dynamic one. What is in both is
  // merged by the builder.
  const bool whole = elf::ForEachSymbol(image, elf::SymbolTable::kStatic, add);
  elf::ForEachSymbol(image, elf::SymbolTable::kDynamic, add);
  return whole;
}

}  // namespace perfkit::symbolize
