// Lines of /proc/PID/maps: real ones, odd ones, and what is none.
#include "src/proc/maps.h"

#include <unistd.h>

#include <catch2/catch.hpp>

#include "src/base/text.h"

namespace perfkit::proc {
namespace {

TEST_CASE("a line says where, how, and of what file", "[maps]") {
  const auto map = ParseMapLine("7f1200000000-7f1200021000 r-xp 0001a000 fd:03 1234567    /usr/lib/a b.so (deleted)");
  REQUIRE(map.has_value());
  CHECK(map->begin == 0x7f1200000000);
  CHECK(map->end == 0x7f1200021000);
  CHECK((map->readable && !map->writable && map->executable && !map->shared));
  CHECK(map->file_offset == 0x1a000);
  CHECK(map->device_major == 0xfd);
  CHECK(map->device_minor == 3);
  CHECK(map->inode == 1234567);
  CHECK(map->path == "/usr/lib/a b.so (deleted)");
}

TEST_CASE("mappings of no file have no path, the kernel's own have a word", "[maps]") {
  CHECK(ParseMapLine("1000-2000 rw-s 00000000 00:00 0 ")->path.empty());
  CHECK(ParseMapLine("1000-2000 rw-s 00000000 00:00 0")->shared);
  CHECK(ParseMapLine("7ffe0000-7fff0000 r-xp 00000000 00:00 0                          [vdso]")->path == "[vdso]");
}

TEST_CASE("what is no line of maps is nothing", "[maps]") {
  for (const char* line :
       {"", "x", "1000", "1000-", "2000-1000 r-xp 0 0:0 0", "1000-2000", "1000-2000 r-x 0 00:00 0", "1000-2000 r-xp",
        "1000-2000 r-xp zz 00:00 0", "1000-2000 r-xp 0 0000 0", "1000-2000 r-xp 0 00:00", "1000-2000 r-xp 0 00:00 x",
        "1ffffffffffffffff-2 r-xp 0 00:00 0"}) {
    CHECK_FALSE(ParseMapLine(line).has_value());
  }
}

TEST_CASE("every line of this process is one, and one of them holds this code", "[maps]") {
  const auto text = ReadMaps(getpid());
  REQUIRE(text.ok());
  int here = 0;
  base::ForEachPiece(*text, '\n', [&](std::string_view line) {
    if (line.empty()) return;
    INFO(line);
    const auto map = ParseMapLine(line);
    REQUIRE(map.has_value());
    const auto code = reinterpret_cast<uint64_t>(&ParseMapLine);
    here += map->executable && map->begin <= code && code < map->end;
  });
  CHECK(here == 1);
  CHECK(absl::IsNotFound(ReadMaps(0x3ffffffe).status()));
}

}  // namespace
}  // namespace perfkit::proc
