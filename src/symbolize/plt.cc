// Names PLT stubs by decoding them: a stub is "jmp *slot(%rip)", and a relocation says which function's address the
// slot holds. Decoding works for .plt, .plt.sec and .plt.got, and for the layouts of all linkers; counting entries
// would not. System V ABI, AMD64 supplement, "Procedure Linkage Table"; Intel CET's .plt.sec starts with endbr64.
#include <elf.h>

#include <string>
#include <unordered_map>

#include "src/elf/symbols.h"
#include "src/symbolize/elf_functions.h"

namespace perfkit::symbolize {
namespace {

// From slot to the index of the symbol in the dynamic table.
using Slots = std::unordered_map<uint64_t, uint32_t>;

// Maximum number of slots. No program imports that many functions.
constexpr size_t kMaxSlots = 1 << 20;
constexpr uint64_t kStubBytes = 16, kShortStubBytes = 8;

void ReadSlots(base::Bytes relocations, Slots& slots) {
  for (uint64_t at = 0; slots.size() < kMaxSlots; at += sizeof(Elf64_Rela)) {
    const auto entry = base::ReadAt<Elf64_Rela>(relocations, at);
    if (!entry) return;
    const uint32_t type = ELF64_R_TYPE(entry->r_info), symbol = ELF64_R_SYM(entry->r_info);
    if ((type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) && symbol != 0) slots[entry->r_offset] = symbol;
  }
}

// Returns the slot through which the code in `stub`, loaded at `address`, jumps: opcode ff 25 and a distance from the
// next instruction.
std::optional<uint64_t> SlotOf(base::Bytes stub, uint64_t address) {
  for (uint64_t at = 0; at + 6 <= stub.size(); ++at) {
    if (stub[at] != std::byte{0xff} || stub[at + 1] != std::byte{0x25}) continue;
    return address + at + 6 + static_cast<uint64_t>(int64_t{*base::ReadAt<int32_t>(stub, at + 2)});
  }
  return std::nullopt;
}

// Returns the names of the dynamic table, by index.
std::vector<std::string_view> DynamicNames(const elf::Image& image) {
  std::vector<std::string_view> names(1);
  elf::ForEachSymbol(image, elf::SymbolTable::kDynamic, [&](const elf::Symbol& symbol) {
    names.push_back(symbol.name);
    return true;
  });
  return names;
}

}  // namespace

void AddPltStubs(const elf::Image& image, SymbolTableBuilder& builder) {
  if (image.machine() != EM_X86_64) return;
  Slots slots;
  for (const char* name : {".rela.plt", ".rela.dyn"}) {
    const std::optional<elf::Section> section = image.FindSection(name);
    if (section) ReadSlots(image.Contents(*section).value_or(base::Bytes()), slots);
  }
  if (slots.empty()) return;
  const std::vector<std::string_view> names = DynamicNames(image);
  for (uint32_t i = 0; i < image.section_count(); ++i) {
    const std::optional<elf::Section> section = image.section(i);
    if (!section || !section->name.starts_with(".plt") || (section->flags & SHF_EXECINSTR) == 0) continue;
    const base::Bytes code = image.Contents(*section).value_or(base::Bytes());
    const uint64_t step = section->entry_bytes == kShortStubBytes ? kShortStubBytes : kStubBytes;
    for (uint64_t at = 0; at + step <= code.size(); at += step) {
      const std::optional<uint64_t> slot = SlotOf(code.subspan(at, step), section->address + at);
      const auto found = slot ? slots.find(*slot) : slots.end();
      if (found == slots.end() || found->second >= names.size() || names[found->second].empty()) continue;
      if (!builder.Add(std::string(names[found->second]) + "@plt", section->address + at, step, Binding::kLocal))
        return;
    }
  }
}

}  // namespace perfkit::symbolize
