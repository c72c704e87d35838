// Picks sections by name, and has libelf unpack those that are compressed.
#include "src/symbolize/dwarf/sections.h"

#include <elf.h>
#include <elfutils/libdwelf.h>
#include <libelf.h>
#include <stdio.h>

#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"

namespace perfkit::symbolize::dwarf {
namespace {

// zlib makes no more than 1,032 bytes of one; what claims to be larger than this is not unpacked either.
constexpr uint64_t kMostUnpackedBytes = uint64_t{4} << 30;
constexpr uint64_t kMostMiniBytes = 256 << 20;

struct Wanted {
  std::string_view name;
  base::Bytes Sections::*member;
};
constexpr Wanted kWanted[] = {
    {"info", &Sections::info},       {"abbrev", &Sections::abbrev},     {"line", &Sections::line},
    {"str", &Sections::str},         {"line_str", &Sections::line_str}, {"str_offsets", &Sections::str_offsets},
    {"addr", &Sections::addr},       {"ranges", &Sections::ranges},     {"rnglists", &Sections::rnglists},
    {"aranges", &Sections::aranges},
};

absl::Status Damaged(std::string_view name, const char* what) {
  return absl::Status(absl::StatusCode::kInvalidArgument, absl::StrFormat("section %s %s", name, what));
}

// What the header of a compressed section says: {size, 0 for zlib or another method}.
std::optional<uint64_t> UnpackedSize(const DebugSection& section) {
  if (section.compressed) {
    const auto header = base::ReadAt<Elf64_Chdr>(section.bytes, 0);
    return header ? std::optional(header->ch_size) : std::nullopt;
  }
  // The older way: "ZLIB", and the size with its highest byte first.
  const auto size = base::ReadAt<uint64_t>(section.bytes, 4);
  return size ? std::optional(__builtin_bswap64(*size)) : std::nullopt;
}

// libelf unpacks sections of ELF files that it may write to: a copy, with nothing in it but this section.
std::string FileAround(const DebugSection& section) {
  const uint64_t at = sizeof(Elf64_Ehdr), headers_at = (at + section.bytes.size() + 7) / 8 * 8;
  std::string file(headers_at + 2 * sizeof(Elf64_Shdr), '\0');
  Elf64_Ehdr header{.e_type = ET_DYN, .e_version = EV_CURRENT, .e_shoff = headers_at, .e_ehsize = sizeof(Elf64_Ehdr)};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 2;
  const Elf64_Shdr packed{.sh_type = SHT_PROGBITS,
                          .sh_flags = section.compressed ? uint64_t{SHF_COMPRESSED} : 0,
                          .sh_offset = at,
                          .sh_size = section.bytes.size(),
                          .sh_addralign = 1};
  std::memcpy(file.data(), &header, sizeof(header));
  std::memcpy(file.data() + at, section.bytes.data(), section.bytes.size());
  std::memcpy(file.data() + headers_at + sizeof(Elf64_Shdr), &packed, sizeof(packed));
  return file;
}

struct CloseElf {
  void operator()(Elf* elf) const { elf_end(elf); }
};
using OwnedElf = std::unique_ptr<Elf, CloseElf>;

struct CloseFile {
  void operator()(FILE* file) const { fclose(file); }
};

}  // namespace

absl::StatusOr<std::unique_ptr<std::string>> Unpack(const DebugSection& section) {
  const std::optional<uint64_t> size = UnpackedSize(section);
  if (!size || *size > kMostUnpackedBytes || *size / 1032 > section.bytes.size()) {
    return Damaged(section.name, "says that more is packed in it than can be");
  }
  elf_version(EV_CURRENT);
  std::string file = FileAround(section);
  const OwnedElf elf(elf_memory(file.data(), file.size()));
  Elf_Scn* const packed = elf == nullptr ? nullptr : elf_getscn(elf.get(), 1);
  if (packed == nullptr) return Damaged(section.name, "cannot be unpacked");
  const int done = section.compressed ? elf_compress(packed, 0, 0) : elf_compress_gnu(packed, 0, 0);
  const Elf_Data* const data = done < 0 ? nullptr : elf_rawdata(packed, nullptr);
  if (data == nullptr || data->d_buf == nullptr || data->d_size != *size) {
    return Damaged(section.name, "is packed in a way that libelf does not unpack (zlib it does, zstd it may not)");
  }
  return std::make_unique<std::string>(static_cast<const char*>(data->d_buf), data->d_size);
}

// xz is unpacked by libdw, as a whole file and from a descriptor only.
absl::StatusOr<std::string> UnpackMini(base::Bytes packed) {
  const std::unique_ptr<FILE, CloseFile> file(tmpfile());
  if (file == nullptr) return absl::ErrnoToStatus(errno, "no temporary file for .gnu_debugdata");
  const bool written = fwrite(packed.data(), 1, packed.size(), file.get()) == packed.size() && fflush(file.get()) == 0;
  if (!written) return absl::ErrnoToStatus(errno, "cannot write a temporary file for .gnu_debugdata");
  elf_version(EV_CURRENT);
  const OwnedElf elf(dwelf_elf_begin(fileno(file.get())));
  size_t size = 0;
  const char* const image = elf == nullptr ? nullptr : elf_rawfile(elf.get(), &size);
  if (image == nullptr || size > kMostMiniBytes) return Damaged(".gnu_debugdata", "cannot be unpacked");
  return std::string(image, size);
}

Sections Sections::From(const std::vector<DebugSection>& sections) {
  Sections result;
  for (const DebugSection& section : sections) {
    std::string_view name = section.name;
    const bool old_way = name.starts_with(".zdebug_");
    if (!old_way && !name.starts_with(".debug_")) continue;
    name.remove_prefix(old_way ? 8 : 7);
    for (const Wanted& wanted : kWanted) {
      if (wanted.name != name || !(result.*wanted.member).empty()) continue;
      result.*wanted.member = section.bytes;
      if (!section.compressed && !old_way) continue;
      absl::StatusOr<std::unique_ptr<std::string>> unpacked = Unpack(section);
      result.*wanted.member = {};
      if (!unpacked.ok()) {
        result.status = unpacked.status();
        continue;
      }
      result.unpacked.push_back(*std::move(unpacked));
      result.*wanted.member = std::as_bytes(std::span(*result.unpacked.back()));
    }
  }
  return result;
}

}  // namespace perfkit::symbolize::dwarf
