// Has libelf unpack a section.
#include "src/unwind/dwarf/inflate.h"

#include <libelf.h>

#include <memory>

namespace perfkit::unwind {
namespace {

// Deflate makes at most 1,032 bytes of one (zlib's technical details): who claims more lies, and libelf would allocate
// what is claimed. More than a GiB is nothing that a module of ours has.
constexpr uint64_t kMostRatio = 1032, kMostBytes = uint64_t{1} << 30;

bool IsHonest(base::Bytes section) {
  const auto header = base::ReadAt<Elf64_Chdr>(section, 0);
  return header && header->ch_size <= kMostBytes && header->ch_size / kMostRatio <= section.size();
}

// A file of that one section: libelf unpacks sections of files, and writes to headers of files that it finds in memory,
// so that it cannot be given the module itself.
std::vector<char> MakeFile(base::Bytes section) {
  Elf64_Ehdr file{};
  std::memcpy(file.e_ident, ELFMAG, SELFMAG);
  file.e_ident[EI_CLASS] = ELFCLASS64;
  file.e_ident[EI_DATA] = ELFDATA2LSB;
  file.e_ident[EI_VERSION] = EV_CURRENT;
  file.e_version = EV_CURRENT;
  file.e_type = ET_DYN;
  file.e_ehsize = sizeof(Elf64_Ehdr);
  file.e_shoff = sizeof(Elf64_Ehdr);
  file.e_shentsize = sizeof(Elf64_Shdr);
  file.e_shnum = 2;
  Elf64_Shdr headers[2]{};
  headers[1].sh_type = SHT_PROGBITS;
  headers[1].sh_flags = SHF_COMPRESSED;
  headers[1].sh_offset = sizeof(file) + sizeof(headers);
  headers[1].sh_size = section.size();
  headers[1].sh_addralign = alignof(Elf64_Chdr);
  std::vector<char> bytes(sizeof(file) + sizeof(headers) + section.size());
  std::memcpy(bytes.data(), &file, sizeof(file));
  std::memcpy(bytes.data() + sizeof(file), headers, sizeof(headers));
  std::memcpy(bytes.data() + sizeof(file) + sizeof(headers), section.data(), section.size());
  return bytes;
}

}  // namespace

std::vector<std::byte> Inflate(base::Bytes section) {
  if (!IsHonest(section) || elf_version(EV_CURRENT) == EV_NONE) return {};
  std::vector<char> file = MakeFile(section);
  const std::unique_ptr<Elf, int (*)(Elf*)> elf(elf_memory(file.data(), file.size()), elf_end);
  Elf_Scn* const part = elf ? elf_getscn(elf.get(), 1) : nullptr;
  if (part == nullptr || elf_compress(part, 0, 0) < 0) return {};
  const Elf_Data* const data = elf_getdata(part, nullptr);
  if (data == nullptr || data->d_buf == nullptr) return {};
  const auto* const bytes = static_cast<const std::byte*>(data->d_buf);
  return {bytes, bytes + data->d_size};
}

}  // namespace perfkit::unwind
