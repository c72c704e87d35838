// Compressed sections, by zlib and zstd: those that assemblers make, damaged ones, and those that expand to more than real
// ones do, or than this process has memory for.
#include "src/unwind/dwarf/cfi/inflate.h"

#include <elf.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <optional>
#include <random>
#include <string>

#include "src/elf/image.h"
#include "src/sys/map_file.h"
#include "tests/support/run.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/support/work.h"
#include "tests/sys/in_child.h"

namespace perfkit {
namespace {

using unwind::Inflate;
using unwind::Packing;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kNoLimit = uint64_t{4} << 30;

// A section of `size` bytes whose header claims `claimed`.
std::vector<std::byte> Claiming(uint64_t size, uint64_t claimed) {
  std::vector<std::byte> section(size);
  const Elf64_Chdr header{.ch_type = ELFCOMPRESS_ZLIB, .ch_reserved = 0, .ch_size = claimed, .ch_addralign = 1};
  std::memcpy(section.data(), &header, sizeof(header));
  return section;
}

TEST_CASE("a section that claims far more than real ones expand to is refused before it is read") {
  const absl::Status status = Inflate(Claiming(kMiB, 130 * kMiB), Packing::kHeader, kNoLimit).status();
  CHECK(absl::IsResourceExhausted(status));
  CHECK(status.message() == "claims to expand from 1048576 to 136314880 bytes: it is damaged or hostile");
  // Small ones may: the whole file would fit into the caches of its reader.
  CHECK(absl::IsInvalidArgument(Inflate(Claiming(kMiB, 60 * kMiB), Packing::kHeader, kNoLimit).status()));
}

// A .debug_info section as the assembler compresses it by `method`; nullopt if it can't.
std::optional<std::vector<std::byte>> Assembled(const std::string& contents, const std::string& method) {
  const testing::TempFolder folder;
  folder.Write("/section.s", ".section .debug_info,\"\",@progbits\n" + contents + "\n");
  const std::string object = folder.path() + "/section.o";
  const testing::Run made = testing::RunCommand("gcc -c -Wa,--compress-debug-sections=" + method + " " + folder.path() +
                                                "/section.s -o " + object);
  const auto file = sys::MapFile(object);
  if (made.exit_code != 0 || !file.ok()) return std::nullopt;
  const auto image = elf::Image::Parse(file->bytes());
  REQUIRE(image.ok());
  const auto section = image->FindSection(".debug_info");
  REQUIRE((section && (section->flags & SHF_COMPRESSED) != 0));
  const base::Bytes bytes = *image->Contents(*section);
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

TEST_CASE("a section of zeros, as an assembler packs it, is refused by its size") {
  size_t tried = 0;
  for (const char* const method : {"zlib", "zstd"}) {
    INFO(method);
    const auto section = Assembled(".zero 200 << 20", method);
    if (!section) continue;
    ++tried;
    CHECK(section->size() < kMiB);
    const absl::Status status = Inflate(*section, Packing::kHeader, kNoLimit).status();
    INFO(status);
    CHECK((absl::IsResourceExhausted(status) || absl::IsInvalidArgument(status)));
  }
  if (tried == 0) SKIP_TEST("no gcc here, or no compression in its assembler");
}

// 64,000 bytes: the numbers from 0 to 15,999.
std::vector<std::byte> Numbers() {
  std::vector<std::byte> bytes;
  for (uint32_t i = 0; i < 16'000; ++i) {
    for (int byte = 0; byte < 4; ++byte) bytes.push_back(static_cast<std::byte>(i >> (8 * byte)));
  }
  return bytes;
}
constexpr char kNumbers[] = "i = 0\n.rept 16000\n.long i\ni = i + 1\n.endr";

void SetClaim(std::vector<std::byte>& section, uint64_t claimed) {
  std::memcpy(section.data() + offsetof(Elf64_Chdr, ch_size), &claimed, sizeof(claimed));
}

TEST_CASE("a section is what it was before an assembler compressed it, by zlib or zstd") {
  size_t tried = 0;
  for (const char* const method : {"zlib", "zstd"}) {
    INFO(method);
    auto section = Assembled(kNumbers, method);
    if (!section) continue;
    ++tried;
    const auto unpacked = Inflate(*section, Packing::kHeader, kNoLimit);
    INFO(unpacked.status());
    REQUIRE(unpacked.ok());
    CHECK((*unpacked == Numbers()));
    for (const uint64_t claimed : {0, 63'999, 64'001, 100'000}) {
      SetClaim(*section, claimed);
      CHECK(absl::IsInvalidArgument(Inflate(*section, Packing::kHeader, kNoLimit).status()));
    }
  }
  if (tried == 0) SKIP_TEST("no gcc here, or no compression in its assembler");
}

TEST_CASE("a damaged zstd section has the size that it claims, or is refused") {
  const auto section = Assembled(kNumbers, "zstd");
  if (!section) SKIP_TEST("no gcc here, or no zstd in its assembler");
  std::mt19937 random(1);
  size_t refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::byte> damaged = *section;
    for (int flips = 0; flips < 3; ++flips) {
      const size_t at = sizeof(Elf64_Chdr) + random() % (damaged.size() - sizeof(Elf64_Chdr));
      damaged[at] = static_cast<std::byte>(random());
    }
    if (i % 2 != 0) damaged.resize(sizeof(Elf64_Chdr) + random() % (damaged.size() - sizeof(Elf64_Chdr)));
    const auto unpacked = Inflate(damaged, Packing::kHeader, kNoLimit);
    if (unpacked.ok()) CHECK(unpacked->size() == 64'000);
    if (!unpacked.ok()) CHECK(absl::IsInvalidArgument(unpacked.status()));
    refused += !unpacked.ok();
  }
  CHECK(refused >= 1000);  // Those that were cut off.
}

TEST_CASE("a section that is compressed by another method says by which") {
  std::vector<std::byte> section = Claiming(100, 200);
  section[0] = std::byte{9};
  const absl::Status status = Inflate(section, Packing::kHeader, kNoLimit).status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(status.message() == "is damaged, or compressed by method 9, which is neither zlib nor zstd");
}

TEST_CASE("a section that there is no memory for says so") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer reserves all of the address space");
  const std::vector<std::byte> section = Claiming(4 * kMiB, 200 * kMiB);
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const int ended = testing::InChild([&] {
    const rlim_t most = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + 100 * kMiB;
    const rlimit limit{most, most};
    if (setrlimit(RLIMIT_AS, &limit) != 0) return false;
    return absl::IsResourceExhausted(Inflate(section, Packing::kHeader, kNoLimit).status());
  });
  CHECK(ended == 0);
}

}  // namespace
}  // namespace perfkit
