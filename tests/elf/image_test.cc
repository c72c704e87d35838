// The ELF reader on built files, valid and damaged.
#include "src/elf/image.h"

#include <catch2/catch.hpp>

#include "tests/elf/elf_builder.h"

namespace perfkit::elf {
namespace {

using testing::BytesOf;
using testing::ElfBuilder;

std::string Refusal(const std::string& file) {
  const absl::StatusOr<Image> image = Image::Parse(BytesOf(file));
  return image.ok() ? "parsed" : std::string(image.status().message());
}

TEST_CASE("what is no ELF file is refused with the reason", "[elf]") {
  CHECK(Refusal("") == "not an ELF file");
  CHECK(Refusal("#!/bin/sh\n exit 0 # longer than an ident") == "not an ELF file");
  std::string file = ElfBuilder().Build();
  CHECK(Refusal(file) == "parsed");
  CHECK(Refusal(file.substr(0, 20)) == "an ELF file cut off after 20 bytes");
  file[EI_CLASS] = 9;
  CHECK(Refusal(file) == "an ELF file of unknown class 9, byte order 1");
}

TEST_CASE("32-bit and big-endian files are refused as such", "[elf]") {
  std::string file = ElfBuilder().Build();
  file[EI_CLASS] = ELFCLASS32;
  CHECK(Refusal(file) == "a 32-bit ELF file: perfkit reads 64-bit ones");
  CHECK(Image::Parse(BytesOf(file)).status().code() == absl::StatusCode::kUnimplemented);
  CHECK(Refusal(file.substr(0, 52)) == "a 32-bit ELF file: perfkit reads 64-bit ones");
  file[EI_CLASS] = ELFCLASS64;
  file[EI_DATA] = ELFDATA2MSB;
  CHECK(Refusal(file) == "a big-endian ELF file: perfkit reads little-endian ones");
}

TEST_CASE("headers of another size are refused", "[elf]") {
  ElfBuilder builder;
  builder.header.e_shentsize = 40;
  CHECK(Refusal(builder.Build()) == "an ELF file with headers of unknown size (segments 56, sections 40 bytes)");
}

TEST_CASE("sections are found by name and by type, with their contents", "[elf]") {
  ElfBuilder builder;
  builder.AddSection(".data", {.sh_type = SHT_PROGBITS, .sh_addr = 0x1000}, "hello");
  builder.AddSection(".bss", {.sh_type = SHT_NOBITS, .sh_size = 1 << 20}, "");
  const std::string file = builder.Build();
  const absl::StatusOr<Image> image = Image::Parse(BytesOf(file));
  REQUIRE(image.ok());
  CHECK(image->type() == ET_DYN);
  CHECK(image->machine() == EM_X86_64);
  CHECK(image->section_count() == 4);
  const std::optional<Section> data = image->FindSection(".data");
  REQUIRE(data);
  CHECK(data->address == 0x1000);
  REQUIRE(image->Contents(*data));
  CHECK(std::memcmp(image->Contents(*data)->data(), "hello", 5) == 0);
  CHECK(image->FindSectionOfType(SHT_NOBITS)->name == ".bss");
  CHECK_FALSE(image->Contents(*image->FindSection(".bss")));
  CHECK_FALSE(image->FindSection(".nothing"));
  CHECK_FALSE(image->section(4));
}

TEST_CASE("an address is found in the segment that loads it", "[elf]") {
  ElfBuilder builder;
  builder.AddSegment({.p_type = PT_NOTE, .p_offset = 0, .p_vaddr = 0x2000, .p_filesz = 0x1000, .p_memsz = 0x1000});
  builder.AddSegment({.p_type = PT_LOAD,
                      .p_flags = PF_R | PF_X,
                      .p_offset = 0x100,
                      .p_vaddr = 0x1100,
                      .p_filesz = 0x80,
                      .p_memsz = 0x200});
  builder.AddSection(".text", {.sh_type = SHT_PROGBITS}, std::string(0x400, 'x'));
  const std::string file = builder.Build();
  const absl::StatusOr<Image> image = Image::Parse(BytesOf(file));
  REQUIRE(image.ok());
  CHECK(image->segment_count() == 2);
  CHECK(image->FileOffset(0x1100) == 0x100);
  CHECK(image->FileOffset(0x117f, PF_X) == 0x17f);
  CHECK(image->FileOffset(0x1100, PF_W) == std::nullopt);
  CHECK(image->FileOffset(0x1180) == std::nullopt);  // after what the file holds: .bss
  CHECK(image->FileOffset(0x10ff) == std::nullopt);
  CHECK(image->FileOffset(0x2000) == std::nullopt);  // a note segment is not loaded
  CHECK_FALSE(image->segment(2));
}

TEST_CASE("counts that the file cannot hold are cut to what it holds", "[elf]") {
  ElfBuilder builder;
  builder.AddSegment({.p_type = PT_LOAD, .p_offset = ~0ull - 4, .p_vaddr = 0, .p_filesz = ~0ull, .p_memsz = ~0ull});
  std::string file = builder.Build();
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof(header));
  header.e_phnum = 0xfffe;
  header.e_shnum = 0xfff0;
  std::memcpy(file.data(), &header, sizeof(header));
  const absl::StatusOr<Image> image = Image::Parse(BytesOf(file));
  REQUIRE(image.ok());
  CHECK(image->section_count() == 2);
  CHECK(uint64_t{image->segment_count()} * sizeof(Elf64_Phdr) <= file.size());
  CHECK(image->FileOffset(~0ull - 1) == std::nullopt);
  CHECK_FALSE(image->Contents(*image->segment(0)));
  CHECK_FALSE(image->FindSection(".x"));
}

TEST_CASE("numbers too large for the header stand in section 0", "[elf]") {
  ElfBuilder builder;
  builder.AddSegment({.p_type = PT_LOAD, .p_vaddr = 0x4000, .p_filesz = 0x10, .p_memsz = 0x10});
  builder.AddSection(".a", {.sh_type = SHT_PROGBITS}, "a");
  std::string file = builder.Build();
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof(header));
  const Elf64_Shdr zero = {.sh_size = header.e_shnum, .sh_link = header.e_shstrndx, .sh_info = 1};
  header.e_shnum = 0;
  header.e_shstrndx = SHN_XINDEX;
  header.e_phnum = PN_XNUM;
  std::memcpy(file.data(), &header, sizeof(header));
  std::memcpy(file.data() + header.e_shoff, &zero, sizeof(zero));
  const absl::StatusOr<Image> image = Image::Parse(BytesOf(file));
  REQUIRE(image.ok());
  CHECK(image->section_count() == 3);
  CHECK(image->segment_count() == 1);
  CHECK(image->FindSection(".a"));
  CHECK(image->FileOffset(0x4004) == 4);
}

TEST_CASE("names are bounded by their table and by reason", "[elf]") {
  const std::string table = std::string("abc\0de", 6);
  CHECK(NameAt(BytesOf(table), 0) == "abc");
  CHECK(NameAt(BytesOf(table), 2) == "c");
  CHECK(NameAt(BytesOf(table), 3) == "");
  CHECK_FALSE(NameAt(BytesOf(table), 4));  // never ends
  CHECK_FALSE(NameAt(BytesOf(table), 6));
  CHECK_FALSE(NameAt(BytesOf(table), ~0ull));
  const std::string huge = std::string(100 << 10, 'x') + '\0';
  CHECK_FALSE(NameAt(BytesOf(huge), 0));
  CHECK(NameAt(BytesOf(huge), 90 << 10)->size() == (10 << 10));
}

}  // namespace
}  // namespace perfkit::elf
