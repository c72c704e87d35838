// Compressed sections that expand to more than real ones do, or than this process has memory for.
#include "src/unwind/dwarf/cfi/inflate.h"

#include <elf.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <fstream>
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

TEST_CASE("a section of zeros, as an assembler packs it, is refused by its size") {
  const testing::TempFolder folder;
  folder.Write("/zeros.s", ".section .debug_info,\"\",@progbits\n.zero 200 << 20\n");
  const std::string object = folder.path() + "/zeros.o";
  const testing::Run made =
      testing::RunCommand("gcc -c -Wa,--compress-debug-sections=zlib " + folder.path() + "/zeros.s -o " + object);
  if (made.exit_code != 0) SKIP_TEST("no gcc here, or no zlib in its assembler");
  const auto file = sys::MapFile(object);
  REQUIRE(file.ok());
  const auto image = elf::Image::Parse(file->bytes());
  REQUIRE(image.ok());
  const auto section = image->FindSection(".debug_info");
  REQUIRE((section && (section->flags & SHF_COMPRESSED) != 0));
  CHECK(absl::IsResourceExhausted(Inflate(*image->Contents(*section), Packing::kHeader, kNoLimit).status()));
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
