// Reads ELF notes. A note is a header of three words, an owner and a description, both padded.
#include "src/elf/notes.h"

#include <elf.h>

#include "absl/strings/str_format.h"

namespace perfkit::elf {
namespace {

constexpr uint64_t Padded(uint64_t size, uint64_t alignment) { return (size + alignment - 1) / alignment * alignment; }

std::string_view OwnerText(base::Bytes bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.substr(0, text.find('\0'));
}

// Ignores empty descriptions, which identify nothing.
std::optional<base::Bytes> FindBuildId(base::Bytes notes, uint64_t alignment) {
  std::optional<base::Bytes> found;
  ForEachNote(notes, alignment, [&](const Note& note) {
    if (note.type == NT_GNU_BUILD_ID && note.owner == "GNU" && !note.description.empty()) found = note.description;
    return !found;
  });
  return found;
}

}  // namespace

// Sizes have 32 bits and positions 64, so no sum wraps. Slice checks them against the bytes.
void ForEachNote(base::Bytes bytes, uint64_t alignment, absl::FunctionRef<bool(const Note&)> visit) {
  alignment = alignment == 8 ? 8 : 4;
  uint64_t at = 0;
  while (const auto header = base::ReadAt<Elf64_Nhdr>(bytes, at)) {
    const uint64_t owner_at = at + sizeof(Elf64_Nhdr);
    const uint64_t description_at = Padded(owner_at + header->n_namesz, alignment);
    const auto owner = base::Slice(bytes, owner_at, header->n_namesz);
    const auto description = base::Slice(bytes, description_at, header->n_descsz);
    if (!owner || !description) return;
    if (!visit({.owner = OwnerText(*owner), .type = header->n_type, .description = *description})) return;
    at = Padded(description_at + header->n_descsz, alignment);
  }
}

// Tries the segments first: a stripped file has them, too.
std::optional<base::Bytes> BuildId(const Image& image) {
  for (uint32_t i = 0; i < image.segment_count(); ++i) {
    const std::optional<Segment> segment = image.segment(i);
    if (!segment || segment->type != PT_NOTE) continue;
    const std::optional<base::Bytes> notes = image.Contents(*segment);
    const std::optional<base::Bytes> found = notes ? FindBuildId(*notes, segment->alignment) : std::nullopt;
    if (found) return found;
  }
  const std::optional<Section> section = image.FindSection(".note.gnu.build-id");
  const std::optional<base::Bytes> notes = section ? image.Contents(*section) : std::nullopt;
  return notes ? FindBuildId(*notes, 4) : std::nullopt;
}

std::string HexText(base::Bytes bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += absl::StrFormat("%02x", static_cast<unsigned>(byte));
  return text;
}

}  // namespace perfkit::elf
