// MiniDebugInfo that xz made is decompressed; damaged and hostile sections end at a limit, in words.
#include "src/symbolize/dwarf/mini_debug_info.h"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <random>

#include "absl/strings/match.h"
#include "src/symbolize/debug_file.h"
#include "tests/elf/elf_builder.h"
#include "tests/support/run.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/support/work.h"

namespace perfkit::symbolize {
namespace {

using dwarf::UnpackMini;
using testing::RunCommand;

// What a command line writes.
std::string BytesFrom(const std::string& command) {
  const testing::TempFolder folder;
  const std::string path = folder.path() + "/bytes";
  if (RunCommand(command + " > " + path).exit_code != 0) return "";
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

absl::StatusOr<std::string> Unpack(const std::string& packed) { return UnpackMini(testing::BytesOf(packed)); }

// The largest number of bytes of memory that this process has had so far.
uint64_t PeakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) << 10;
}

TEST_CASE("what xz has compressed is what was there before", "[mini]") {
  if (RunCommand("xz --version").exit_code != 0) SKIP_TEST("there is no xz here");
  const std::string whole = BytesFrom("cat /bin/sh /bin/ls");
  REQUIRE(whole.size() > 100'000);
  for (const char* const options : {"-0", "-6", "--check=none", "--block-size=65536"}) {
    const absl::StatusOr<std::string> unpacked = Unpack(BytesFrom(std::string("cat /bin/sh /bin/ls | xz ") + options));
    INFO(options << ": " << unpacked.status());
    REQUIRE(unpacked.ok());
    CHECK((*unpacked == whole));
  }
}

TEST_CASE("a small section that holds half a gigabyte ends at the limit, and costs no more memory", "[mini][hostile]") {
  if (RunCommand("xz --version").exit_code != 0) SKIP_TEST("there is no xz here");
  const std::string bomb = BytesFrom("head -c 512M /dev/zero | xz -0");
  REQUIRE(!bomb.empty());
  CHECK(bomb.size() < 1 << 20);
  const uint64_t before = PeakBytes();
  const absl::Status status = Unpack(bomb).status();
  INFO(status);
  CHECK(absl::IsResourceExhausted(status));
  CHECK(absl::StrContains(status.message(), ".gnu_debugdata decompresses to more than 128 MiB"));
  if (!testing::kSanitized) CHECK(PeakBytes() - before <= 2 * dwarf::kMaxMiniBytes + dwarf::kMaxXzMemory);
}

// The xz file format, 3.1: a block's header begins with its size, and ends with a checksum; LZMA2's one byte of
// properties is the size of its dictionary (5.3.1).
TEST_CASE("a section that needs a large dictionary is refused", "[mini][hostile]") {
  if (RunCommand("xz --version").exit_code != 0) SKIP_TEST("there is no xz here");
  std::string packed = BytesFrom("echo hello | xz -0");
  constexpr size_t kBlock = 12;
  REQUIRE(packed.size() > kBlock + 12);
  const size_t size = (static_cast<uint8_t>(packed[kBlock]) + size_t{1}) * 4;
  const size_t filter = packed.find("\x21\x01", kBlock);
  REQUIRE(filter < kBlock + size - 4);
  const auto with_dictionary = [&](char bits) {
    packed[filter + 2] = bits;
    const uint32_t checksum = Crc32(testing::BytesOf(packed).subspan(kBlock, size - 4));
    std::memcpy(packed.data() + kBlock + size - 4, &checksum, sizeof(checksum));
    return Unpack(packed);
  };
  const absl::StatusOr<std::string> small = with_dictionary(28);  // 64 MiB
  INFO(small.status());
  CHECK((small.ok() && *small == "hello\n"));
  const absl::Status status = with_dictionary(36).status();  // 1 GiB
  CHECK(absl::IsResourceExhausted(status));
  CHECK(absl::StrContains(status.message(), ".gnu_debugdata needs, to be decompressed, more than 128 MiB"));
}

TEST_CASE("damaged sections are refused in words", "[mini][hostile]") {
  if (RunCommand("xz --version").exit_code != 0) SKIP_TEST("there is no xz here");
  const std::string packed = BytesFrom("cat /bin/ls | xz -0");
  REQUIRE(packed.size() > 1000);
  const auto refused = [](const std::string& bytes) {
    const absl::Status status = Unpack(bytes).status();
    return absl::IsInvalidArgument(status) &&
           absl::StrContains(status.message(), ".gnu_debugdata can't be decompressed");
  };
  CHECK(refused(""));
  CHECK(refused("no xz"));
  for (const size_t size : {size_t{11}, size_t{12}, size_t{30}, packed.size() / 2, packed.size() - 1}) {
    CHECK(refused(packed.substr(0, size)));
  }
  std::mt19937 random(4);
  for (int i = 0; i < 200; ++i) {
    std::string damaged = packed;
    damaged[random() % damaged.size()] ^= static_cast<char>(1 + random() % 255);
    const absl::Status status = Unpack(damaged).status();
    CHECK((absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status)));
  }
}

}  // namespace
}  // namespace perfkit::symbolize
