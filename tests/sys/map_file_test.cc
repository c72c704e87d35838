// Mapped files against read ones, what is no file to map, and files that others may cut short.
#include "src/sys/map_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "src/sys/files.h"
#include "tests/support/temp_folder.h"
#include "tests/sys/in_child.h"

namespace perfkit::sys {
namespace {

using testing::TempFolder;

TEST_CASE("a mapped file holds what a read one holds", "[map_file]") {
  const absl::StatusOr<Mapping> mapped = MapFile("/proc/self/exe");
  const absl::StatusOr<std::string> read = ReadFile("/proc/self/exe");
  REQUIRE(mapped.ok());
  REQUIRE(read.ok());
  REQUIRE(mapped->size() == read->size());
  CHECK(std::memcmp(mapped->data(), read->data(), read->size()) == 0);
}

TEST_CASE("a mapped file tells its number", "[map_file]") {
  struct stat info;
  REQUIRE(stat("/proc/self/exe", &info) == 0);
  FileStamp stamp;
  REQUIRE(MapFile("/proc/self/exe", &stamp).ok());
  CHECK(stamp.inode == info.st_ino);
  CHECK_FALSE(stamp.deleted);
  CHECK(stamp.changed_ns / 1'000'000'000 == info.st_ctim.tv_sec);
}

TEST_CASE("a file says when it was changed, whatever its owner says of its contents", "[map_file]") {
  const TempFolder folder;
  folder.Write("/file", "text");
  const std::string path = folder.path() + "/file";
  const timespec times[2] = {{1, 0}, {1, 0}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  struct stat info;
  REQUIRE(stat(path.c_str(), &info) == 0);
  FileStamp stamp;
  REQUIRE(MapFile(path, &stamp).ok());
  CHECK(stamp.changed_ns == int64_t{info.st_ctim.tv_sec} * 1'000'000'000 + info.st_ctim.tv_nsec);
  CHECK(stamp.changed_ns / 1'000'000'000 != 1);
  CHECK(stamp.written_ns == 1'000'000'000);
  const std::optional<FileStamp> again = StampOf(path);
  REQUIRE(again);
  CHECK(again->inode == stamp.inode);
  CHECK(again->changed_ns == stamp.changed_ns);
  CHECK(again->device == stamp.device);
  if (stamp.device != 0) CHECK(stamp.device == (uint64_t{major(info.st_dev)} << 32 | minor(info.st_dev)));
  CHECK_FALSE(StampOf(path + "/none").has_value());
}

TEST_CASE("a pipe in the place of a file is refused, not waited for", "[map_file]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/pipe";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK(MapFile(path).status().message() == path + " is no regular file");
}

// What others may write to is read: then nothing that they do to the file ends this process.
TEST_CASE("a file that others may write to can be cut short without harm", "[map_file]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/file";
  const std::string text(100'000, 'x');
  folder.Write("/file", text);
  const auto after_cut = [&] {
    const absl::StatusOr<Mapping> file = MapFile(path);
    if (!file.ok() || truncate(path.c_str(), 0) != 0) return false;
    return std::memcmp(file->data(), text.data(), text.size()) == 0;
  };
  REQUIRE(chmod(path.c_str(), 0666) == 0);
  CHECK(testing::InChild(after_cut) == 0);
  if (geteuid() != 0) return;
  folder.Write("/file", text);
  REQUIRE(chmod(path.c_str(), 0644) == 0);
  REQUIRE(chown(path.c_str(), 65534, 65534) == 0);
  CHECK(testing::InChild(after_cut) == 0);
}

TEST_CASE("a file of this user alone is mapped, not read", "[map_file]") {
  const TempFolder folder;
  folder.Write("/file", "text");
  const std::string path = folder.path() + "/file";
  REQUIRE(chmod(path.c_str(), 0600) == 0);
  const absl::StatusOr<Mapping> file = MapFile(path);
  REQUIRE(file.ok());
  folder.Write("/file", "next");
  CHECK(std::memcmp(file->data(), "next", 4) == 0);
}

TEST_CASE("a file of others that is too large to be read is refused", "[map_file]") {
  const TempFolder folder;
  folder.Write("/file", "text");
  const std::string path = folder.path() + "/file";
  REQUIRE(chmod(path.c_str(), 0666) == 0);
  REQUIRE(truncate(path.c_str(), kMaxReadBytes + 1) == 0);
  CHECK(absl::IsResourceExhausted(MapFile(path).status()));
  REQUIRE(chmod(path.c_str(), 0600) == 0);
  CHECK(MapFile(path).ok());
}

TEST_CASE("what cannot be mapped says why", "[map_file]") {
  CHECK(absl::IsNotFound(MapFile("/no/such/file").status()));
  CHECK(MapFile("/").status().message() == "/ is no regular file");
  CHECK(MapFile("/dev/null").status().message() == "/dev/null is no regular file");
  CHECK(absl::IsInvalidArgument(MapFile("/proc/self/maps").status()));  // a file of size 0
}

}  // namespace
}  // namespace perfkit::sys
