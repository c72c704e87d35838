// Finds .eh_frame and .debug_frame. .eh_frame is found by the program header of its search table, which even files
// without section headers have, and images in memory; .debug_frame is not loaded, so only a section header has it.
#include "src/unwind/dwarf/cfi/cfi_sections.h"

#include <dwarf.h>
#include <elf.h>

#include <algorithm>

#include "src/unwind/dwarf/cfi/inflate.h"

namespace perfkit::unwind {
namespace {

constexpr char kOldName[] = ".zdebug_frame";               // GNU's older compression.
constexpr uint64_t kMaxUnpackedBytes = uint64_t{1} << 30;  // No module's .debug_frame is larger.

// Returns the file's bytes from `address` to the end of its segment; empty if that is not loaded.
base::Bytes LoadedFrom(const elf::Image& image, uint64_t address) {
  for (uint32_t i = 0; i < image.segment_count(); ++i) {
    const std::optional<elf::Segment> load = image.segment(i);
    if (!load || load->type != PT_LOAD || address < load->address) continue;
    const uint64_t skip = address - load->address;
    if (skip >= load->file_bytes || load->offset >= image.bytes().size()) continue;
    const base::Bytes contents = image.bytes().subspan(load->offset);
    const uint64_t end = std::min<uint64_t>(contents.size(), load->file_bytes);
    if (skip < end) return contents.subspan(skip, end - skip);
  }
  return {};
}

std::optional<elf::Segment> FindHeaderSegment(const elf::Image& image) {
  for (uint32_t i = 0; i < image.segment_count(); ++i) {
    const std::optional<elf::Segment> segment = image.segment(i);
    if (segment && segment->type == PT_GNU_EH_FRAME) return segment;
  }
  return std::nullopt;
}

// Only section headers say where the section ends. In files without them, its last record, of length 0, does.
void CutToSection(const elf::Image& image, CfiSection& found) {
  const std::optional<elf::Section> section = image.FindSection(".eh_frame");
  if (!section || section->address != found.address) return;
  found.bytes = found.bytes.first(std::min<uint64_t>(found.bytes.size(), section->size_bytes));
}

// The header starts with a version, three encodings and the address of .eh_frame (LSB Core 5.0, 10.6.2).
std::optional<CfiSection> FindByHeader(const elf::Image& image) {
  const std::optional<elf::Segment> segment = FindHeaderSegment(image);
  const std::optional<base::Bytes> header = segment ? image.Contents(*segment) : std::nullopt;
  if (!header || header->size() < 4 || header->front() != std::byte{1}) return std::nullopt;
  base::DwarfReader reader(header->subspan(4));
  const auto address =
      ReadPointerAt(reader, static_cast<uint8_t>((*header)[1]), segment->address + 4, segment->address);
  if (!address) return std::nullopt;
  CfiSection found{.bytes = LoadedFrom(image, *address),
                   .address = *address,
                   .is_eh = true,
                   .header = *header,
                   .header_address = segment->address};
  if (found.bytes.empty()) return std::nullopt;
  CutToSection(image, found);
  return found;
}

std::optional<uint64_t> ReadNumber(base::DwarfReader& reader, uint8_t format) {
  switch (format) {
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8: return reader.Fixed<uint64_t>();
    case DW_EH_PE_uleb128: return reader.Uleb();
    case DW_EH_PE_udata2: return reader.Fixed<uint16_t>();
    case DW_EH_PE_udata4: return reader.Fixed<uint32_t>();
    case DW_EH_PE_sleb128: return static_cast<uint64_t>(reader.Sleb());
    case DW_EH_PE_sdata2: return static_cast<uint64_t>(int64_t{reader.Fixed<int16_t>()});
    case DW_EH_PE_sdata4: return static_cast<uint64_t>(int64_t{reader.Fixed<int32_t>()});
    default: return std::nullopt;
  }
}

std::optional<elf::Section> FindDebugSection(const elf::Image& image) {
  const std::optional<elf::Section> section = image.FindSection(".debug_frame");
  return section ? section : image.FindSection(kOldName);
}

}  // namespace

std::optional<CfiSection> FindEhFrame(const elf::Image& image) {
  if (std::optional<CfiSection> found = FindByHeader(image)) return found;
  const std::optional<elf::Section> section = image.FindSection(".eh_frame");
  const std::optional<base::Bytes> bytes = section ? image.Contents(*section) : std::nullopt;
  if (!bytes || bytes->empty()) return std::nullopt;
  return CfiSection{.bytes = *bytes, .address = section->address, .is_eh = true, .header = {}};
}

bool HasDebugFrame(const elf::Image& image) {
  const std::optional<elf::Section> section = FindDebugSection(image);
  return section && image.Contents(*section).has_value();
}

std::optional<CfiSection> FindDebugFrame(const elf::Image& image, std::vector<std::byte>& storage) {
  const std::optional<elf::Section> section = FindDebugSection(image);
  const std::optional<base::Bytes> bytes = section ? image.Contents(*section) : std::nullopt;
  if (!bytes || bytes->empty()) return std::nullopt;
  const bool old_way = section->name == kOldName;
  if (!old_way && (section->flags & SHF_COMPRESSED) == 0) return CfiSection{.bytes = *bytes, .header = {}};
  const Packing packing = old_way ? Packing::kGnu : Packing::kHeader;
  absl::StatusOr<std::vector<std::byte>> unpacked = Inflate(*bytes, packing, kMaxUnpackedBytes);
  if (!unpacked.ok() || unpacked->empty()) return std::nullopt;
  storage = *std::move(unpacked);
  return CfiSection{.bytes = storage, .header = {}};
}

std::optional<uint64_t> ReadPointer(base::DwarfReader& reader, uint8_t encoding, const CfiSection& section) {
  const uint64_t address = section.address + static_cast<uint64_t>(reader.rest().data() - section.bytes.data());
  return ReadPointerAt(reader, encoding, address, section.header_address);
}

std::optional<uint64_t> ReadPointerAt(base::DwarfReader& reader, uint8_t encoding, uint64_t address,
                                      uint64_t data_base) {
  const std::optional<uint64_t> number = ReadNumber(reader, encoding & 0x0f);
  if (!number || !reader.ok()) return std::nullopt;
  switch (encoding & 0xf0) {
    case 0: return *number;
    case DW_EH_PE_pcrel: return *number + address;
    case DW_EH_PE_datarel: return *number + data_base;
    default: return std::nullopt;
  }
}

}  // namespace perfkit::unwind
