// Mapped files against read ones, and what is no file to map.
#include "src/sys/map_file.h"

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

TEST_CASE("what cannot be mapped says why", "[map_file]") {
  CHECK(absl::IsNotFound(MapFile("/no/such/file").status()));
  CHECK(MapFile("/").status().message() == "/ is no regular file");
  CHECK(MapFile("/dev/null").status().message() == "/dev/null is no regular file");
  CHECK(absl::IsInvalidArgument(MapFile("/proc/self/maps").status()));  // a file of size 0
}

}  // namespace
}  // namespace perfkit::sys
