// Modules found again: this very program, the vDSO, and files that are not what ran.
#include "src/proc/module_file.h"

#include <elf.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_format.h"
#include "src/elf/notes.h"
#include "src/sys/files.h"
#include "src/sys/map_file.h"
#include "tests/support/skip.h"
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

// The wall clock, `seconds` from now.
int64_t WallClockNs(int64_t seconds) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return (now.tv_sec + seconds) * 1'000'000'000 + now.tv_nsec;
}

TEST_CASE("a file that was changed after it was mapped is refused, unless its build-id tells that it is the same",
          "[module_file][law]") {
  const testing::TempFolder folder;
  ModuleId id{.path = folder.path() + "/copy", .pid = getpid()};
  std::filesystem::copy_file(Self(), id.path);
  id.mapped_ns = WallClockNs(60);
  REQUIRE(ModuleFile::Open(id, "/proc").ok());
  id.mapped_ns = WallClockNs(-60);
  const absl::Status changed = ModuleFile::Open(id, "/proc").status();
  CHECK(absl::IsFailedPrecondition(changed));
  CHECK(std::string(changed.message()).find("changed after it was mapped") != std::string::npos);
  id.build_id = ReadBuildId({.path = id.path, .pid = getpid()}, "/proc");
  if (!id.build_id.empty()) CHECK(ModuleFile::Open(id, "/proc").ok());
}

TEST_CASE("a file that was deleted is read while it is mapped", "[module_file][law]") {
  const testing::TempFolder folder;
  const std::string path = folder.path() + "/copy";
  std::filesystem::copy_file(Self(), path);
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const absl::StatusOr<sys::Mapping> mapping = sys::MapFile(path);
  REQUIRE(mapping.ok());
  sys::FileStamp stamp;
  REQUIRE(sys::MapFile(path, &stamp).ok());
  const auto begin = reinterpret_cast<uint64_t>(mapping->data());
  const uint64_t page = sys::PageSize();
  ModuleId id{.path = path,
              .inode = stamp.inode,
              .pid = getpid(),
              .begin = begin,
              .end = begin + (mapping->size() + page - 1) / page * page,
              .mapped_ns = WallClockNs(-60)};
  std::filesystem::remove(path);
  const absl::StatusOr<ModuleFile> file = ModuleFile::Open(id, "/proc");
  const std::string link = absl::StrFormat("/proc/self/map_files/%x-%x", id.begin, id.end);
  if (!sys::IsReadable(link)) {
    CHECK(absl::IsNotFound(file.status()));
    SKIP_TEST("this user may not read /proc/self/map_files");
  }
  REQUIRE(file.ok());
  CHECK(file->image().bytes().size() == mapping->size());
  std::filesystem::copy_file(Self(), path);  // another one, at the same path
  CHECK(ModuleFile::Open(id, "/proc").ok());
  id.mapped_ns = WallClockNs(-7200);  // It was written after that.
  CHECK(absl::IsFailedPrecondition(ModuleFile::Open(id, "/proc").status()));
}

TEST_CASE("a file of another device is another file, though its path and inode are the same", "[module_file]") {
  const std::optional<sys::FileStamp> stamp = sys::StampOf(Self());
  REQUIRE(stamp);
  ModuleId id{.path = Self(), .inode = stamp->inode, .pid = getpid(), .device = stamp->device};
  CHECK(ModuleFile::Open(id, "/proc").ok());
  id.device += 1;
  // On overlayfs and others no device is known.
  CHECK(ModuleFile::Open(id, "/proc").ok() == (stamp->device == 0));
  CHECK(ReadBuildId(id, "/proc").empty() == (stamp->device != 0));
  id.device = 0;
  id.uncertain = true;
  const absl::Status status = ModuleFile::Open(id, "/proc").status();
  CHECK(absl::IsFailedPrecondition(status));
  CHECK(status.message().find("--build-id") != std::string::npos);
}

TEST_CASE("a place is counted from where its module begins", "[module_file]") {
  CHECK(ModuleId{"/lib/a.so"}.OffsetOf(0x7000, 0x1000) == 0x1000);
  CHECK(ModuleId{"[vdso]"}.OffsetOf(0x7000, 0x1000) == 0);
  CHECK(ModuleId{"//anon"}.OffsetOf(0x7000, 0x1000) == 0x7000);
}

}  // namespace
}  // namespace perfkit::proc
