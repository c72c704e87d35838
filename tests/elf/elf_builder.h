// Builds small ELF files in memory, with any contents that a test needs.
#pragma once

#include <elf.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/cursor.h"

namespace perfkit::testing {

// An ELF64 file of a header, segments, and sections with their contents; add in any order, then Build.
class ElfBuilder {
 public:
  Elf64_Ehdr header = MakeHeader();

  // Returns the section's index. Index 0 is the null section, the last one holds the names.
  uint16_t AddSection(const std::string& name, Elf64_Shdr section, std::string contents) {
    sections_.push_back({name, section, std::move(contents)});
    return static_cast<uint16_t>(sections_.size());
  }

  void AddSegment(Elf64_Phdr segment) { segments_.push_back(segment); }

  std::string Build() const {
    std::string file(sizeof(Elf64_Ehdr) + segments_.size() * sizeof(Elf64_Phdr), '\0');
    std::string names(1, '\0');
    std::vector<Elf64_Shdr> headers(1);
    for (const Part& part : sections_) headers.push_back(Append(part, file, names));
    headers.push_back(Append({".shstrtab", {.sh_type = SHT_STRTAB}, ""}, file, names));
    headers.back().sh_size = names.size();
    file += names;
    Elf64_Ehdr first = header;
    first.e_phoff = segments_.empty() ? 0 : sizeof(Elf64_Ehdr);
    first.e_phnum = static_cast<uint16_t>(segments_.size());
    first.e_shoff = file.size();
    first.e_shnum = static_cast<uint16_t>(headers.size());
    first.e_shstrndx = static_cast<uint16_t>(headers.size() - 1);
    std::memcpy(file.data(), &first, sizeof(first));
    if (!segments_.empty()) {
      std::memcpy(file.data() + sizeof(first), segments_.data(), segments_.size() * sizeof(Elf64_Phdr));
    }
    file.append(reinterpret_cast<const char*>(headers.data()), headers.size() * sizeof(Elf64_Shdr));
    return file;
  }

 private:
  struct Part {
    std::string name;
    Elf64_Shdr header;
    std::string contents;
  };

  static Elf64_Ehdr MakeHeader() {
    Elf64_Ehdr made{};
    std::memcpy(made.e_ident, ELFMAG, SELFMAG);
    made.e_ident[EI_CLASS] = ELFCLASS64;
    made.e_ident[EI_DATA] = ELFDATA2LSB;
    made.e_ident[EI_VERSION] = EV_CURRENT;
    made.e_type = ET_DYN;
    made.e_machine = EM_X86_64;
    made.e_phentsize = sizeof(Elf64_Phdr);
    made.e_shentsize = sizeof(Elf64_Shdr);
    return made;
  }

  static Elf64_Shdr Append(const Part& part, std::string& file, std::string& names) {
    Elf64_Shdr placed = part.header;
    placed.sh_name = static_cast<uint32_t>(names.size());
    names += part.name + '\0';
    placed.sh_offset = file.size();
    if (placed.sh_size == 0) placed.sh_size = part.contents.size();
    file += part.contents;
    return placed;
  }

  std::vector<Part> sections_;
  std::vector<Elf64_Phdr> segments_;
};

// One symbol table entry as text, to append to a section's contents.
inline std::string SymbolBytes(uint32_t name, uint8_t type, uint16_t section, uint64_t address, uint64_t size = 8,
                               uint8_t binding = STB_GLOBAL) {
  Elf64_Sym symbol{};
  symbol.st_name = name;
  symbol.st_info = static_cast<uint8_t>(ELF64_ST_INFO(binding, type));
  symbol.st_shndx = section;
  symbol.st_value = address;
  symbol.st_size = size;
  return std::string(reinterpret_cast<const char*>(&symbol), sizeof(symbol));
}

inline base::Bytes BytesOf(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

}  // namespace perfkit::testing
