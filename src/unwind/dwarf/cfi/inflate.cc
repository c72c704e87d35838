// Decompresses sections: zlib's with libelf, zstd's with libzstd, which many a libelf lacks. Sizes that a section claims are checked before anything is allocated: against what
// its bytes can expand to, what real sections expand to, and what this process may allocate.
#include "src/unwind/dwarf/cfi/inflate.h"

#include <libelf.h>

#include <cstdlib>
#include <memory>
#include <optional>

#include "absl/strings/str_format.h"
#include "src/unwind/dwarf/cfi/unzstd.h"

namespace perfkit::unwind {
namespace {

// Deflate expands by a factor of at most 1,032 (zlib's technical details). zstd can expand further, but no real section
// does. libelf would allocate any size that the section claims.
constexpr uint64_t kMaxRatio = 1032;
// Debug information is packed to between a half and a twentieth of its size. So beyond kAnyRatio bytes, a section that
// expands further than kRealRatio is not one: it would take gigabytes from a file of a few megabytes.
constexpr uint64_t kRealRatio = 64;
constexpr uint64_t kAnyRatio = uint64_t{64} << 20;

// ELFCOMPRESS_ZSTD, which elf.h of glibc 2.36 lacks.
constexpr uint32_t kMethodZstd = 2;

std::optional<uint64_t> UnpackedSize(base::Bytes section, Packing packing) {
  if (packing == Packing::kHeader) {
    const auto header = base::ReadAt<Elf64_Chdr>(section, 0);
    return header ? std::optional(header->ch_size) : std::nullopt;
  }
  const auto size = base::ReadAt<uint64_t>(section, 4);
  return size ? std::optional(__builtin_bswap64(*size)) : std::nullopt;
}

// Returns an ELF file that contains only this section. libelf decompresses sections of files only, and it writes to the
// headers of files in memory, so it must not get the module itself.
std::vector<char> MakeFile(base::Bytes section, Packing packing) {
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
  headers[1].sh_flags = packing == Packing::kHeader ? SHF_COMPRESSED : 0;
  headers[1].sh_offset = sizeof(file) + sizeof(headers);
  headers[1].sh_size = section.size();
  headers[1].sh_addralign = alignof(Elf64_Chdr);
  std::vector<char> bytes(sizeof(file) + sizeof(headers) + section.size());
  std::memcpy(bytes.data(), &file, sizeof(file));
  std::memcpy(bytes.data() + sizeof(file), headers, sizeof(headers));
  std::memcpy(bytes.data() + sizeof(file) + sizeof(headers), section.data(), section.size());
  return bytes;
}

// Returns true if this process may allocate `bytes` now, e.g. by RLIMIT_AS.
bool CanAllocate(uint64_t bytes) {
  void* volatile memory = std::malloc(bytes);  // Compilers omit allocations that nothing uses.
  std::free(memory);
  return memory != nullptr;
}

// Returns OK if a section of these bytes may be decompressed to `size`.
absl::Status CheckSize(base::Bytes section, uint64_t size) {
  if (size > kAnyRatio && size / kRealRatio > section.size()) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("claims to expand from %d to %d bytes: it is damaged or hostile", section.size(), size));
  }
  // libelf's copy and the result, and the file for libelf.
  if (!CanAllocate(2 * size + section.size() + 4096)) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "expands to %d MiB, for which this process has no memory. Remedy: raise its limit (ulimit -v)", size >> 20));
  }
  return absl::OkStatus();
}

absl::Status Damaged(const char* what) { return absl::Status(absl::StatusCode::kInvalidArgument, what); }

absl::StatusOr<std::vector<std::byte>> InflateByLibelf(base::Bytes section, Packing packing, uint64_t size) {
  if (elf_version(EV_CURRENT) == EV_NONE) return Damaged("can't be decompressed: this libelf is too old");
  std::vector<char> file = MakeFile(section, packing);
  const std::unique_ptr<Elf, int (*)(Elf*)> elf(elf_memory(file.data(), file.size()), elf_end);
  Elf_Scn* const part = elf ? elf_getscn(elf.get(), 1) : nullptr;
  if (part == nullptr) return Damaged("can't be decompressed");
  const int done = packing == Packing::kHeader ? elf_compress(part, 0, 0) : elf_compress_gnu(part, 0, 0);
  const Elf_Data* const data = done < 0 ? nullptr : elf_rawdata(part, nullptr);
  if (data == nullptr || data->d_buf == nullptr || data->d_size != size) {
    return Damaged("is damaged: it is not in zlib's format, or of another size than it claims");
  }
  const auto* const bytes = static_cast<const std::byte*>(data->d_buf);
  return std::vector<std::byte>(bytes, bytes + data->d_size);
}

}  // namespace

absl::StatusOr<std::vector<std::byte>> Inflate(base::Bytes section, Packing packing, uint64_t max_bytes) {
  const std::optional<uint64_t> size = UnpackedSize(section, packing);
  if (!size || *size > max_bytes || *size / kMaxRatio > section.size()) {
    return Damaged("claims more bytes than it can contain");
  }
  if (absl::Status fits = CheckSize(section, *size); !fits.ok()) return fits;
  if (packing == Packing::kHeader) {
    const uint32_t method = base::ReadAt<Elf64_Chdr>(section, 0)->ch_type;
    if (method == kMethodZstd) return Unzstd(section.subspan(sizeof(Elf64_Chdr)), *size);
    if (method != ELFCOMPRESS_ZLIB) {
      return absl::InvalidArgumentError(
          absl::StrFormat("is damaged, or compressed by method %d, which is neither zlib nor zstd", method));
    }
  }
  return InflateByLibelf(section, packing, *size);
}

}  // namespace perfkit::unwind
