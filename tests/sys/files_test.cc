// Whole files and folders: exact, bounded, and with an error that names the path.
#include "src/sys/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/as_user.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/seccomp_filter.h"
#include "tests/support/temp_folder.h"

namespace perfkit::sys {
namespace {

using testing::TempFolder;

bool Names(const absl::Status& status, const std::string& what) {
  return status.ToString().find(what) != std::string::npos;
}

TEST_CASE("a file is read whole, whatever its size", "[files]") {
  const TempFolder folder;
  for (const size_t size : {0, 1, 16383, 16384, 16385, 100'000}) {
    std::string text(size, 'x');
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31);
    folder.Write("/file", text);
    const auto read = ReadFile(folder.path() + "/file");
    REQUIRE(read.ok());
    CHECK(*read == text);
  }
}

TEST_CASE("a file of procfs, whose size is 0, is read whole", "[files]") {
  std::ifstream file("/proc/sys/kernel/version");
  std::stringstream theirs;
  theirs << file.rdbuf();
  CHECK(ReadFile("/proc/sys/kernel/version").value() == theirs.str());
}

TEST_CASE("a file above the bound is refused, at the bound it is not", "[files]") {
  const TempFolder folder;
  folder.Write("/file", std::string(1000, 'x'));
  CHECK(ReadFile(folder.path() + "/file", 1000).ok());
  CHECK(absl::IsOutOfRange(ReadFile(folder.path() + "/file", 999).status()));
  CHECK(absl::IsOutOfRange(ReadFile("/dev/zero", 100'000).status()));
}

TEST_CASE("what cannot be read is named, with the reason", "[files]") {
  const auto missing = ReadFile("/no/such/file");
  CHECK(absl::IsNotFound(missing.status()));
  CHECK(Names(missing.status(), "/no/such/file"));
  CHECK_FALSE(ReadFile("/proc").ok());  // a folder
  CHECK(testing::AsOrdinaryUser([] {
    const auto closed = ReadFile("/etc/shadow");
    return absl::IsPermissionDenied(closed.status()) && Names(closed.status(), "/etc/shadow");
  }));
}

TEST_CASE("folders are listed sorted, without themselves", "[files]") {
  const TempFolder folder;
  for (const char* name : {"/b", "/a", "/.hidden", "/sub/x"}) folder.Write(name, "");
  CHECK(ListFolder(folder.path()).value() == std::vector<std::string>{".hidden", "a", "b", "sub"});
  CHECK(absl::IsNotFound(ListFolder(folder.path() + "/none").status()));
  CHECK_FALSE(ListFolder(folder.path() + "/a").ok());
}

TEST_CASE("a folder that cannot be read to its end is not taken for a short one", "[files]") {
  CHECK(testing::AsOrdinaryUser([] {
    if (!testing::RefuseCall(SYS_getdents64, EPERM)) return true;
    const absl::Status status = ListFolder("/proc/self/fd").status();
    return absl::IsPermissionDenied(status) && Names(status, "/proc/self/fd");
  }));
}

TEST_CASE("the descriptors that are counted are those that are open, up to the limit", "[files]") {
  constexpr int kLimit = 64;
  CHECK(testing::AsOrdinaryUser([] {
    uint64_t open = 0;
    for (int fd = 0; fd < kLimit; ++fd) open += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    const int above = fcntl(STDOUT_FILENO, F_DUPFD, kLimit), below = fcntl(STDOUT_FILENO, F_DUPFD, 0);
    return above >= kLimit && below >= 0 && below < kLimit && CountDescriptors(kLimit).value() == open + 1;
  }));
  CHECK(absl::IsNotFound(CountDescriptors(kLimit, "/nonexistent").status()));
}

TEST_CASE("the remedy for a file system that is missing is to mount it", "[files]") {
  const TempFolder folder;
  const absl::Status none = absl::NotFoundError("cannot open x"), denied = absl::PermissionDeniedError("x");
  CHECK(WithMountRemedy(none, KernelFiles::kProc, folder.path()).message() ==
        "cannot open x. Remedy: as root: mount -t proc proc " + folder.path() + ".");
  CHECK(WithMountRemedy(none, KernelFiles::kSysfs, folder.path()).message() ==
        "cannot open x. Remedy: as root: mount -t sysfs sysfs " + folder.path() + ".");
  CHECK(WithMountRemedy(denied, KernelFiles::kProc, folder.path()) == denied);
  folder.Write("/self", "");
  folder.Write("/bus", "");
  CHECK(WithMountRemedy(none, KernelFiles::kProc, folder.path()) == none);
  CHECK(WithMountRemedy(none, KernelFiles::kSysfs, folder.path()) == none);
}

TEST_CASE("existence, readability and owner are what stat says", "[files]") {
  const TempFolder folder;
  folder.Write("/file", "x");
  const std::string path = folder.path() + "/file";
  CHECK(Exists(path));
  CHECK(IsReadable(path));
  CHECK(OwnerOf(path) == geteuid());
  CHECK(OwnerOf("/proc/1") == uid_t{0});
  CHECK_FALSE(Exists(path + "x"));
  CHECK_FALSE(IsReadable(path + "x"));
  CHECK_FALSE(OwnerOf(path + "x"));
  REQUIRE(chmod(path.c_str(), 0) == 0);
  CHECK(Exists(path));
  CHECK(OwnerOf(path) == geteuid());  // needs no right to read
  if (geteuid() != 0) CHECK_FALSE(IsReadable(path));
}

TEST_CASE("no failing call leaks, and interruptions are not told", "[files][sweep]") {
  const TempFolder folder;
  folder.Write("/file", std::string(40'000, 'x'));
  const testing::SweepTally tally = testing::SweepFaults([&] {
    const auto text = ReadFile(folder.path() + "/file");
    if (!text.ok()) return text.status();
    return text->size() == 40'000 ? absl::OkStatus() : absl::DataLossError("a part of the file");
  });
  CHECK(tally.refused > 0);
  CHECK(tally.survived > 0);  // reads that were interrupted, and a close that failed
}

}  // namespace
}  // namespace perfkit::sys
