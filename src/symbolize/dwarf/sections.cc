// Selects sections by name, and decompresses those that are compressed.
#include "src/symbolize/dwarf/sections.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "src/unwind/dwarf/cfi/inflate.h"

namespace perfkit::symbolize::dwarf {
namespace {

// Maximum size of all decompressed sections of a file.
constexpr uint64_t kMaxUnpackedBytes = uint64_t{4} << 30;

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

absl::Status WithName(std::string_view name, const absl::Status& what) {
  return absl::Status(what.code(), absl::StrFormat("section %s %s", name, std::string(what.message())));
}

}  // namespace

Sections Sections::From(const std::vector<DebugSection>& sections) {
  Sections result;
  uint64_t left = kMaxUnpackedBytes;
  for (const DebugSection& section : sections) {
    std::string_view name = section.name;
    const bool old_way = name.starts_with(".zdebug_");
    if (!old_way && !name.starts_with(".debug_")) continue;
    name.remove_prefix(old_way ? 8 : 7);
    for (const Wanted& wanted : kWanted) {
      if (wanted.name != name || !(result.*wanted.member).empty()) continue;
      result.*wanted.member = section.bytes;
      if (!section.compressed && !old_way) continue;
      // SHF_COMPRESSED has an Elf64_Chdr before the data; the older .zdebug_ sections have "ZLIB" and a size.
      const unwind::Packing packing = section.compressed ? unwind::Packing::kHeader : unwind::Packing::kGnu;
      absl::StatusOr<std::vector<std::byte>> unpacked = unwind::Inflate(section.bytes, packing, left);
      result.*wanted.member = {};
      if (!unpacked.ok()) {
        result.status = WithName(section.name, unpacked.status());
        continue;
      }
      left -= unpacked->size();
      result.unpacked.push_back(*std::move(unpacked));
      // Later elements may move the vectors, but not the bytes that they own.
      result.*wanted.member = result.unpacked.back();
    }
  }
  return result;
}

}  // namespace perfkit::symbolize::dwarf
