// Modules found again: this very program, the vDSO, and files that are not what ran.
#include "src/proc/module_file.h"

#include <elf.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "src/elf/notes.h"
#include "tests/support/temp_folder.h"

namespace perfkit::proc {
namespace {

[[gnu::noinline]] int SomeFunction(int x) { return x + 1; }

std::string Self() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

TEST_CASE("this program's code is loaded where its bytes are", "[module_file]") {
  const absl::StatusOr<ModuleFile> file = ModuleFile::Open({Self(), 0, "", getpid()}, "/proc");
  REQUIRE(file.ok());
  const LoadedCode code(file->image());
  uint32_t segments = 0;
  for (uint32_t i = 0; i < file->image().segment_count(); ++i) {
    const elf::Segment segment = *file->image().segment(i);
    if (segment.type != PT_LOAD || (segment.flags & PF_X) == 0) continue;
    ++segments;
    CHECK(code.AddressOf(segment.offset) == segment.address);
    CHECK(code.AddressOf(segment.offset + segment.file_bytes - 1) == segment.address + segment.file_bytes - 1);
    CHECK(file->image().FileOffset(segment.address + 1, PF_X) == segment.offset + 1);
  }
  CHECK(segments >= 1);
  CHECK_FALSE(code.AddressOf(0).has_value());  // headers
  CHECK_FALSE(code.AddressOf(UINT64_MAX).has_value());
  CHECK(SomeFunction(1) == 2);
}

TEST_CASE("the vDSO is found in memory", "[module_file]") {
  if (getauxval(AT_SYSINFO_EHDR) == 0) return;
  const absl::StatusOr<ModuleFile> file = ModuleFile::Open({"[vdso]", 0, "", 1}, "/proc");
  REQUIRE(file.ok());
  CHECK(reinterpret_cast<uint64_t>(file->image().bytes().data()) == getauxval(AT_SYSINFO_EHDR));
}

TEST_CASE("what is no file, or another one by now, is said", "[module_file]") {
  CHECK(absl::IsNotFound(ModuleFile::Open({"//anon", 0, "", getpid()}, "/proc").status()));
  CHECK(absl::IsNotFound(ModuleFile::Open({"/no/such/file", 0, "", getpid()}, "/proc").status()));
  CHECK(absl::IsFailedPrecondition(ModuleFile::Open({Self(), 1, "", getpid()}, "/proc").status()));
  CHECK(absl::IsFailedPrecondition(ModuleFile::Open({Self(), 0, "another", getpid()}, "/proc").status()));
  testing::TempFolder folder;
  const std::string path = folder.path() + "/text";
  std::ofstream(path) << "no ELF file";
  const absl::Status status = ModuleFile::Open({path, 0, "", getpid()}, "/proc").status();
  CHECK_FALSE(status.ok());
  CHECK(std::string(status.message()).find(path) == 0);
}

TEST_CASE("a place is counted from where its module begins", "[module_file]") {
  CHECK(ModuleId{"/lib/a.so"}.OffsetOf(0x7000, 0x1000) == 0x1000);
  CHECK(ModuleId{"[vdso]"}.OffsetOf(0x7000, 0x1000) == 0);
  CHECK(ModuleId{"//anon"}.OffsetOf(0x7000, 0x1000) == 0x7000);
}

}  // namespace
}  // namespace perfkit::proc
