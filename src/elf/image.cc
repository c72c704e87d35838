// Reads the headers of ELF files. Headers are read from the bytes on each call instead of being kept: a read is cheap,
// and an Image needs no memory of its own. All reads but that of e_ident go through base::ReadAt, Slice and TextAt,
// which return nullopt beyond the end of their bytes.
#include "src/elf/image.h"

#include <elf.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"

namespace perfkit::elf {
namespace {

// The status of all bytes that are not, or no longer, an ELF file.
absl::Status Damaged(const std::string& what) { return absl::Status(absl::StatusCode::kInvalidArgument, what); }

// Checks e_ident, which decides how to read all other bytes.
absl::Status CheckIdent(base::Bytes bytes) {
  const auto ident = base::ReadAt<Elf64_Ehdr>(bytes, 0);
  const bool magic = bytes.size() >= EI_NIDENT && std::memcmp(bytes.data(), ELFMAG, SELFMAG) == 0;
  if (!magic) return Damaged("not an ELF file");
  const auto kind = static_cast<unsigned>(bytes[EI_CLASS]), order = static_cast<unsigned>(bytes[EI_DATA]);
  if (kind == ELFCLASS32) {
    return absl::Status(absl::StatusCode::kUnimplemented, "a 32-bit ELF file: perfkit reads 64-bit ones");
  }
  if (order == ELFDATA2MSB) {
    return absl::Status(absl::StatusCode::kUnimplemented, "a big-endian ELF file: perfkit reads little-endian ones");
  }
  if (kind != ELFCLASS64 || order != ELFDATA2LSB) {
    return Damaged(absl::StrFormat("an ELF file of unknown class %d, byte order %d", kind, order));
  }
  if (!ident) return Damaged(absl::StrFormat("an ELF file cut off after %d bytes", bytes.size()));
  return absl::OkStatus();
}

Segment FromHeader(const Elf64_Phdr& header) {
  return {.type = header.p_type,
          .flags = header.p_flags,
          .offset = header.p_offset,
          .address = header.p_vaddr,
          .file_bytes = header.p_filesz,
          .memory_bytes = header.p_memsz,
          .alignment = header.p_align};
}

Section FromHeader(const Elf64_Shdr& header) {
  return {.name = {},
          .type = header.sh_type,
          .flags = header.sh_flags,
          .address = header.sh_addr,
          .offset = header.sh_offset,
          .size_bytes = header.sh_size,
          .link = header.sh_link,
          .info = header.sh_info,
          .entry_bytes = header.sh_entsize};
}

// Returns how many entries of `size` bytes fit between `at` and the end of the file; at most `claimed`.
uint32_t Fitting(base::Bytes bytes, uint64_t at, uint64_t size, uint64_t claimed) {
  if (at == 0 || at >= bytes.size()) return 0;
  return static_cast<uint32_t>(std::min({claimed, (bytes.size() - at) / size, uint64_t{UINT32_MAX}}));
}

constexpr uint64_t kLongestName = 64 << 10;

}  // namespace

std::optional<std::string_view> NameAt(base::Bytes table, uint64_t offset) {
  if (offset >= table.size()) return std::nullopt;
  return base::TextAt(table.subspan(offset, std::min<uint64_t>(table.size() - offset, kLongestName)), 0);
}

// Refuses headers of other sizes, whose layout is unknown. No linker makes them.
absl::StatusOr<Image> Image::Parse(base::Bytes bytes) {
  if (absl::Status ident = CheckIdent(bytes); !ident.ok()) return ident;
  const auto header = base::ReadAt<Elf64_Ehdr>(bytes, 0);
  Image image(bytes);
  image.type_ = header->e_type;
  image.machine_ = header->e_machine;
  image.entry_ = header->e_entry;
  const bool odd_segments = header->e_phnum != 0 && header->e_phentsize != sizeof(Elf64_Phdr);
  const bool odd_sections = header->e_shoff != 0 && header->e_shentsize != sizeof(Elf64_Shdr);
  if (odd_segments || odd_sections) {
    return Damaged(absl::StrFormat("an ELF file with headers of unknown size (segments %d, sections %d bytes)",
                                   header->e_phentsize, header->e_shentsize));
  }
  image.sections_at_ = header->e_shoff;
  image.segments_at_ = header->e_phoff;
  image.names_index_ = header->e_shstrndx;
  image.CountSections(header->e_shnum);
  image.CountSegments(header->e_phnum);
  return image;
}

// Numbers that exceed the header's fields are in section 0 (gABI, "Extended section numbering"; PN_XNUM).
void Image::CountSections(uint64_t claimed) {
  const auto zero = base::ReadAt<Elf64_Shdr>(bytes_, sections_at_);
  if (sections_at_ == 0 || !zero) return;
  section_count_ = Fitting(bytes_, sections_at_, sizeof(Elf64_Shdr), claimed == 0 ? zero->sh_size : claimed);
  if (names_index_ == SHN_XINDEX) names_index_ = zero->sh_link;
}

void Image::CountSegments(uint64_t claimed) {
  if (claimed == PN_XNUM && section_count_ > 0) claimed = section(0)->info;
  segment_count_ = Fitting(bytes_, segments_at_, sizeof(Elf64_Phdr), claimed);
}

std::optional<Segment> Image::segment(uint32_t index) const {
  if (index >= segment_count_) return std::nullopt;
  const auto header = base::ReadAt<Elf64_Phdr>(bytes_, segments_at_ + uint64_t{index} * sizeof(Elf64_Phdr));
  if (!header) return std::nullopt;
  return FromHeader(*header);
}

// A section of a file without section names has the name "".
std::optional<Section> Image::section(uint32_t index) const {
  if (index >= section_count_) return std::nullopt;
  const auto header = base::ReadAt<Elf64_Shdr>(bytes_, sections_at_ + uint64_t{index} * sizeof(Elf64_Shdr));
  if (!header) return std::nullopt;
  Section section = FromHeader(*header);
  if (names_index_ >= section_count_) return section;
  const auto names = base::ReadAt<Elf64_Shdr>(bytes_, sections_at_ + uint64_t{names_index_} * sizeof(Elf64_Shdr));
  if (!names) return section;
  const std::optional<base::Bytes> table = Contents(FromHeader(*names));
  if (table) section.name = NameAt(*table, header->sh_name).value_or(std::string_view());
  return section;
}

// A linear search: files have some tens of sections.
std::optional<Section> Image::FindSection(std::string_view name) const {
  for (uint32_t i = 0; i < section_count_; ++i) {
    const std::optional<Section> found = section(i);
    if (found && found->name == name) return found;
  }
  return std::nullopt;
}

std::optional<Section> Image::FindSectionOfType(uint32_t type) const {
  for (uint32_t i = 0; i < section_count_; ++i) {
    const std::optional<Section> found = section(i);
    if (found && found->type == type) return found;
  }
  return std::nullopt;
}

std::optional<base::Bytes> Image::Contents(const Section& section) const {
  if (section.type == SHT_NOBITS) return std::nullopt;
  return base::Slice(bytes_, section.offset, section.size_bytes);
}

std::optional<base::Bytes> Image::Contents(const Segment& segment) const {
  return base::Slice(bytes_, segment.offset, segment.file_bytes);
}

// Uses segments instead of sections: the kernel maps segments, and stripped files have them, too.
std::optional<uint64_t> Image::FileOffset(uint64_t address, uint32_t flags) const {
  for (uint32_t i = 0; i < segment_count_; ++i) {
    const std::optional<Segment> load = segment(i);
    if (!load || load->type != PT_LOAD || (load->flags & flags) != flags) continue;
    if (address < load->address || address - load->address >= load->file_bytes) continue;
    const uint64_t offset = load->offset + (address - load->address);
    if (offset < bytes_.size()) return offset;
  }
  return std::nullopt;
}

}  // namespace perfkit::elf
