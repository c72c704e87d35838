// Selects sections by name, and decompresses those that are compressed.
#include "src/symbolize/dwarf/sections.h"

#include <elfutils/libdwelf.h>
#include <libelf.h>
#include <stdio.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "src/unwind/dwarf/cfi/inflate.h"

namespace perfkit::symbolize::dwarf {
namespace {

// Maximum sizes of decompressed bytes.
constexpr uint64_t kMaxUnpackedBytes = uint64_t{4} << 30;
constexpr uint64_t kMaxMiniBytes = 256 << 20;

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

absl::Status Damaged(std::string_view name, std::string_view what) {
  return absl::Status(absl::StatusCode::kInvalidArgument, absl::StrFormat("section %s %s", name, what));
}

struct CloseFile {
  void operator()(FILE* file) const { fclose(file); }
};

}  // namespace

// libdw decompresses xz, but only whole files, and only from a descriptor.
absl::StatusOr<std::string> UnpackMini(base::Bytes packed) {
  const std::unique_ptr<FILE, CloseFile> file(tmpfile());
  if (file == nullptr) return absl::ErrnoToStatus(errno, "no temporary file for .gnu_debugdata");
  const bool written = fwrite(packed.data(), 1, packed.size(), file.get()) == packed.size() && fflush(file.get()) == 0;
  if (!written) return absl::ErrnoToStatus(errno, "cannot write a temporary file for .gnu_debugdata");
  elf_version(EV_CURRENT);
  const std::unique_ptr<Elf, int (*)(Elf*)> elf(dwelf_elf_begin(fileno(file.get())), elf_end);
  size_t size = 0;
  const char* const image = elf == nullptr ? nullptr : elf_rawfile(elf.get(), &size);
  if (image == nullptr || size > kMaxMiniBytes) return Damaged(".gnu_debugdata", "can't be decompressed");
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
      // SHF_COMPRESSED has an Elf64_Chdr before the data; the older .zdebug_ sections have "ZLIB" and a size.
      const unwind::Packing packing = section.compressed ? unwind::Packing::kHeader : unwind::Packing::kGnu;
      absl::StatusOr<std::vector<std::byte>> unpacked = unwind::Inflate(section.bytes, packing, kMaxUnpackedBytes);
      result.*wanted.member = {};
      if (!unpacked.ok()) {
        result.status = Damaged(section.name, std::string(unpacked.status().message()));
        continue;
      }
      result.unpacked.push_back(*std::move(unpacked));
      // Later elements may move the vectors, but not the bytes that they own.
      result.*wanted.member = result.unpacked.back();
    }
  }
  return result;
}

}  // namespace perfkit::symbolize::dwarf
