// Notes built by hand, and the build-id of a real file, compared with readelf's output.
#include "src/elf/notes.h"

#include <elf.h>
#include <link.h>

#include <catch2/catch.hpp>
#include <vector>

#include "src/sys/files.h"
#include "tests/elf/elf_builder.h"
#include "tests/support/skip.h"

namespace perfkit::elf {
namespace {

using testing::BytesOf;
using testing::ElfBuilder;

std::string NoteBytes(std::string owner, uint32_t type, std::string description, size_t alignment = 4) {
  const Elf64_Nhdr header = {.n_namesz = static_cast<uint32_t>(owner.size() + 1),
                             .n_descsz = static_cast<uint32_t>(description.size()),
                             .n_type = type};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes += owner + '\0';
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
  bytes += description;
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
  return bytes;
}

std::vector<std::string> OwnersIn(const std::string& bytes, uint64_t alignment = 4) {
  std::vector<std::string> owners;
  ForEachNote(BytesOf(bytes), alignment, [&](const Note& note) {
    owners.emplace_back(note.owner);
    return true;
  });
  return owners;
}

TEST_CASE("notes are walked with their padding", "[notes]") {
  const std::string bytes = NoteBytes("A", 1, "x") + NoteBytes("Four", 2, "12345") + NoteBytes("GNU", 3, "");
  CHECK(OwnersIn(bytes) == std::vector<std::string>{"A", "Four", "GNU"});
  const std::string wide = NoteBytes("A", 1, "x", 8) + NoteBytes("BC", 1, "123456789", 8);
  CHECK(OwnersIn(wide, 8) == std::vector<std::string>{"A", "BC"});
}

TEST_CASE("notes that reach past their end are not seen", "[notes]") {
  const std::string bytes = NoteBytes("GNU", 3, "12345678");
  for (size_t size = 0; size + 1 < bytes.size(); ++size) {
    CHECK(OwnersIn(bytes.substr(0, size)).empty());
  }
  std::string lying = bytes;
  lying[0] = lying[1] = lying[2] = lying[3] = '\xff';  // an owner of 4 GiB
  CHECK(OwnersIn(lying).empty());
}

TEST_CASE("the build-id is found in a segment, and in a section", "[notes]") {
  const std::string note = NoteBytes("stapsdt", 3, "zz") + NoteBytes("GNU", NT_GNU_BUILD_ID, "\xab\xcd\x01");
  ElfBuilder by_section;
  by_section.AddSection(".note.gnu.build-id", {.sh_type = SHT_NOTE}, note);
  const std::string first = by_section.Build();
  REQUIRE(BuildId(*Image::Parse(BytesOf(first))));
  CHECK(HexText(*BuildId(*Image::Parse(BytesOf(first)))) == "abcd01");

  ElfBuilder by_segment;
  by_segment.AddSegment({.p_type = PT_NOTE, .p_offset = 120, .p_filesz = note.size(), .p_align = 4});
  by_segment.AddSection(".stripped", {.sh_type = SHT_PROGBITS}, note);
  const std::string second = by_segment.Build();
  REQUIRE(BuildId(*Image::Parse(BytesOf(second))));
  CHECK(HexText(*BuildId(*Image::Parse(BytesOf(second)))) == "abcd01");
  CHECK_FALSE(BuildId(*Image::Parse(BytesOf(ElfBuilder().Build()))));
}

// Finds libc's mapping with the dynamic linker.
std::string LibcPath() {
  std::string path;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        const std::string_view name = info->dlpi_name;
        if (name.find("/libc.so") != name.npos) *static_cast<std::string*>(out) = name;
        return 0;
      },
      &path);
  return path;
}

TEST_CASE("libc's build-id is the one that readelf prints", "[notes]") {
  const std::string path = LibcPath();
  if (path.empty()) SKIP_TEST("no libc.so is loaded here");
  const absl::StatusOr<std::string> file = sys::ReadFile(path);
  REQUIRE(file.ok());
  const absl::StatusOr<Image> image = Image::Parse(BytesOf(*file));
  REQUIRE(image.ok());
  FILE* const pipe = ::popen(("LC_ALL=C readelf -nW '" + path + "' 2>/dev/null").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string output(64 << 10, '\0');
  output.resize(std::fread(output.data(), 1, output.size(), pipe));
  ::pclose(pipe);
  if (output.empty()) SKIP_TEST("readelf is not installed");
  REQUIRE(BuildId(*image));
  CHECK(output.find("Build ID: " + HexText(*BuildId(*image)) + "\n") != std::string::npos);
}

}  // namespace
}  // namespace perfkit::elf
