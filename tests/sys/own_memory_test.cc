// Memory of every kind is asked for without a fault.
#include "src/sys/own_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "tests/support/temp_folder.h"

namespace perfkit::sys {
namespace {

constexpr size_t kAPage = 4096;

uint64_t Map(int protection, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1) {
  return reinterpret_cast<uint64_t>(mmap(nullptr, kAPage, protection, flags, fd, 0));
}

TEST_CASE("what can be read is told from what cannot") {
  errno = 77;
  const uint64_t usual = Map(PROT_READ | PROT_WRITE), constant = Map(PROT_READ), none = Map(PROT_NONE);
  CHECK(CanRead(usual));  // it was never touched
  CHECK(CanRead(constant));
  CHECK_FALSE(CanRead(none));
  munmap(reinterpret_cast<void*>(usual), kAPage);
  CHECK_FALSE(CanRead(usual));
  CHECK_FALSE(CanRead(0));
  CHECK_FALSE(CanRead(kAPage));
  CHECK_FALSE(CanRead(~uint64_t{0} - kAPage + 1));        // the kernel's
  CHECK_FALSE(CanRead(uint64_t{1} << 62));                // not mapped
  CHECK_FALSE(CanRead(uint64_t{0x0000'8000'0000'0000}));  // beyond the last that is a user's
  CHECK(errno == 77);
}

TEST_CASE("a page after the end of its file cannot be read") {
  const testing::TempFolder folder;
  folder.Write("/file", "x");
  FILE* const file = fopen((folder.path() + "/file").c_str(), "r");
  REQUIRE(file != nullptr);
  auto* const two = static_cast<char*>(mmap(nullptr, 2 * kAPage, PROT_READ, MAP_PRIVATE, fileno(file), 0));
  CHECK(CanRead(reinterpret_cast<uint64_t>(two)));
  CHECK_FALSE(CanRead(reinterpret_cast<uint64_t>(two) + kAPage));
  munmap(two, 2 * kAPage);
  fclose(file);
}

TEST_CASE("the kernel copies what is there, and nothing else") {
  const uint64_t page = Map(PROT_READ | PROT_WRITE), none = Map(PROT_NONE);
  std::memcpy(reinterpret_cast<void*>(page), "12345678", 8);
  char copy[9] = {};
  errno = 77;
  if (!CopyOwn(page, copy, 8)) return;  // not permitted here: readers do without
  CHECK(std::string_view(copy) == "12345678");
  CHECK_FALSE(CopyOwn(none, copy, 8));
  CHECK_FALSE(CopyOwn(0, copy, 8));
  CHECK_FALSE(CopyOwn(~uint64_t{0} - 3, copy, 8));
  CHECK(errno == 77);
}

}  // namespace
}  // namespace perfkit::sys
