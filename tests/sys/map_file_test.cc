// Mapped files against read ones, and what is no file to map.
#include "src/sys/map_file.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "src/sys/files.h"

namespace perfkit::sys {
namespace {

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

TEST_CASE("what cannot be mapped says why", "[map_file]") {
  CHECK(absl::IsNotFound(MapFile("/no/such/file").status()));
  CHECK(MapFile("/").status().message() == "/ is no regular file");
  CHECK(MapFile("/dev/null").status().message() == "/dev/null is no regular file");
  CHECK(absl::IsInvalidArgument(MapFile("/proc/self/maps").status()));  // a file of size 0
}

}  // namespace
}  // namespace perfkit::sys
