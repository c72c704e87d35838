// Replacing a file: whole for every reader, at every moment and after every fault.
#include "src/sys/edit_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "src/sys/fd.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"

namespace perfkit::sys {
namespace {

using testing::Call;
using testing::FakeKernel;
using testing::TempFolder;

const std::string kOld(9000, 'o'), kNew(8000, 'n');

std::string TextOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

absl::Status ReplaceByNew(const std::string& path) {
  return EditFile(path, [](const std::string&) -> absl::StatusOr<std::string> { return kNew; });
}

TEST_CASE("an edit sees the old text and leaves the new one", "[files]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/file";
  const auto append = [](const std::string& text) -> absl::StatusOr<std::string> { return text + "x"; };
  CHECK(EditFile(path, append).ok());
  CHECK(EditFile(path, append).ok());
  CHECK(TextOf(path) == "xx");
  CHECK(EditFile(path, [](const std::string&) { return absl::AbortedError("no"); }).message() == "no");
  CHECK(TextOf(path) == "xx");
  CHECK_THAT(std::string(EditFile(folder.path() + "/none/file", append).message()),
             Catch::EndsWith("/none', does not exist. Remedy: create it"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

std::string g_path;
bool g_whole = true;

TEST_CASE("while a file is replaced, readers find the whole old text", "[files]") {
  const TempFolder folder;
  folder.Write("/file", kOld);
  g_path = folder.path() + "/file";
  g_whole = true;
  FakeKernel fake;
  fake.below().write = [](int fd, const void* bytes, size_t size) {
    g_whole &= TextOf(g_path) == kOld;
    return ::write(fd, bytes, std::min<size_t>(size, 1000));  // in many pieces
  };
  CHECK(ReplaceByNew(g_path).ok());
  CHECK(fake.calls(Call::kWrite) == 8);
  CHECK(g_whole);
  CHECK(TextOf(g_path) == kNew);
}

TEST_CASE("no other thread gets the lock of a file while it is edited", "[files]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/file";
  bool locked = false;
  const auto try_to_lock = [&](const std::string& text) -> absl::StatusOr<std::string> {
    const OwnedFd fd(::open(path.c_str(), O_RDWR));
    struct flock whole {};
    whole.l_type = F_WRLCK;
    locked = ::fcntl(fd.get(), F_OFD_SETLK, &whole) != 0 && errno == EAGAIN;
    return text + "x";
  };
  CHECK(EditFile(path, try_to_lock).ok());
  CHECK(locked);
}

// The file of another editor takes the place of g_path's once, while the lock is waited for.
bool g_is_replaced = false;

TEST_CASE("a file that was replaced while its lock was waited for is edited as it is then", "[files]") {
  const TempFolder folder;
  folder.Write("/file", "old");
  folder.Write("/other", "other");
  g_path = folder.path() + "/file";
  g_is_replaced = false;
  FakeKernel fake;
  fake.below().fcntl = [](int fd, int command, unsigned long argument) {
    if (!std::exchange(g_is_replaced, true)) {
      std::filesystem::rename(std::filesystem::path(g_path).replace_filename("other"), g_path);
    }
    return ::fcntl(fd, command, argument);
  };
  CHECK(EditFile(g_path, [](const std::string& text) -> absl::StatusOr<std::string> { return text + "x"; }).ok());
  CHECK(TextOf(g_path) == "otherx");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("an edit goes on after signals", "[files]") {
  const TempFolder folder;
  folder.Write("/file", kOld);
  FakeKernel fake;
  static int calls;
  calls = 0;
  fake.below().read = [](int fd, void* bytes, size_t size) {
    if (++calls % 2 != 0) return errno = EINTR, ssize_t{-1};
    return ::read(fd, bytes, size);
  };
  fake.below().write = [](int fd, const void* bytes, size_t size) {
    if (++calls % 2 != 0) return errno = EINTR, ssize_t{-1};
    return ::write(fd, bytes, std::min<size_t>(size, 1000));
  };
  CHECK(ReplaceByNew(folder.path() + "/file").ok());
  CHECK(TextOf(folder.path() + "/file") == kNew);
}

TEST_CASE("a disk that is full leaves the old text", "[files]") {
  const TempFolder folder;
  folder.Write("/file", kOld);
  FakeKernel fake;
  fake.below().write = [](int fd, const void* bytes, size_t size) -> ssize_t {
    if (size > 1000) return ::write(fd, bytes, 1000);
    errno = ENOSPC;
    return -1;
  };
  const absl::Status full = ReplaceByNew(folder.path() + "/file");
  CHECK(full.message().find("cannot write") != std::string::npos);
  CHECK(TextOf(folder.path() + "/file") == kOld);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("after any call that fails the text is the old one, or the new one and OK", "[files][sweep]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/file";
  const testing::SweepTally tally = testing::SweepFaults([&] {
    folder.Write("/file", kOld);
    const absl::Status edited = ReplaceByNew(path);
    CHECK(TextOf(path) == (edited.ok() ? kNew : kOld));
    return edited;
  });
  CHECK(tally.refused > 0);
  CHECK(tally.survived > 0);  // interruptions, and a close that failed
}

TEST_CASE("a file keeps its permissions, and a link to it stays a link", "[files]") {
  const TempFolder folder;
  folder.Write("/real/file", kOld);
  const std::string path = folder.path() + "/real/file", link = folder.path() + "/link";
  REQUIRE(chmod(path.c_str(), 0640) == 0);
  REQUIRE(symlink(path.c_str(), link.c_str()) == 0);
  CHECK(ReplaceByNew(link).ok());
  CHECK(std::filesystem::is_symlink(link));
  CHECK(TextOf(path) == kNew);
  struct stat about {};
  REQUIRE(stat(path.c_str(), &about) == 0);
  CHECK((about.st_mode & 07777) == 0640);
}

mode_t KindOf(const std::string& path) {
  struct stat about {};
  return lstat(path.c_str(), &about) == 0 ? about.st_mode & S_IFMT : 0;
}

size_t CountFiles(const TempFolder& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

int g_opened = 0;  // Number of times that g_path was opened, other than to look at it.

// `path` must be refused by its name and by a link to it, and must stay what it is.
void CheckRefused(const TempFolder& folder, const std::string& path) {
  const mode_t kind = KindOf(path);
  const std::string link = folder.path() + "/link";
  REQUIRE(symlink(path.c_str(), link.c_str()) == 0);
  g_opened = 0;
  FakeKernel fake;
  fake.below().open = [](const char* name, int flags) {
    g_opened += std::string(name).starts_with(g_path) && (flags & O_PATH) == 0;
    return ::open(name, flags | O_CLOEXEC, 0666);
  };
  for (const std::string& name : {path, link}) {
    g_path = name;
    const absl::Status refused = ReplaceByNew(name);
    CHECK(absl::IsFailedPrecondition(refused));
    CHECK(refused.message().find("not a regular file. Remedy: ") != std::string::npos);
    CHECK(KindOf(path) == kind);
    CHECK(KindOf(link) == S_IFLNK);
  }
  CHECK(g_opened == 0);
  CHECK(CountFiles(folder) == 2);
}

// The device is the test's own, and has a number that no driver has.
TEST_CASE("a device is neither replaced nor opened", "[files]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/device";
  if (mknod(path.c_str(), S_IFCHR | 0666, makedev(4095, 77)) != 0) SKIP_TEST("this user may not make a device");
  CheckRefused(folder, path);
}

TEST_CASE("a FIFO and a folder are neither replaced nor waited for", "[files]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/special";
  const bool fifo = GENERATE(true, false);
  REQUIRE((fifo ? mkfifo(path.c_str(), 0666) : mkdir(path.c_str(), 0777)) == 0);
  CheckRefused(folder, path);
}

TEST_CASE("what an editor that crashed has left is replaced", "[files]") {
  const TempFolder folder;
  folder.Write("/file", kOld);
  folder.Write("/file.new", "half");
  CHECK(ReplaceByNew(folder.path() + "/file").ok());
  CHECK(TextOf(folder.path() + "/file") == kNew);
  CHECK(CountFiles(folder) == 1);
}

TEST_CASE("a link or a FIFO in place of the new file is refused", "[files]") {
  const TempFolder folder;
  folder.Write("/file", kOld);
  folder.Write("/other", "other");
  const std::string aside = folder.path() + "/file.new";
  const bool fifo = GENERATE(false, true);
  REQUIRE((fifo ? mkfifo(aside.c_str(), 0666) : symlink("other", aside.c_str())) == 0);
  const absl::Status refused = ReplaceByNew(folder.path() + "/file");
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK(refused.message().find(aside) != std::string::npos);
  CHECK(TextOf(folder.path() + "/file") == kOld);
  CHECK(KindOf(folder.path() + "/file") == S_IFREG);
  CHECK(TextOf(folder.path() + "/other") == "other");
  CHECK(KindOf(aside) == (fifo ? S_IFIFO : S_IFLNK));
}

}  // namespace
}  // namespace perfkit::sys
