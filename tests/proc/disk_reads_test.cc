// The kernel's account of what a thread has read from disks.
#include "src/proc/disk_reads.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/skip.h"

namespace perfkit::proc {
namespace {

TEST_CASE("the bytes of an io file are parsed", "[disk_reads]") {
  CHECK(ParseDiskBytes("rchar: 1\nread_bytes: 4096\nwrite_bytes: 2\n") == 4096);
  CHECK(ParseDiskBytes("read_bytes: 18446744073709551615") == UINT64_MAX);
  for (const char* const bad : {"", "rchar: 1\n", "read_bytes: x\n", "read_bytes: \n", "cancelled_read_bytes: 1\n"}) {
    CHECK(!ParseDiskBytes(bad));
  }
}

TEST_CASE("what a thread reads from a disk is in its account", "[disk_reads]") {
  const auto tid = static_cast<pid_t>(syscall(SYS_gettid));
  const std::optional<uint64_t> before = ReadDiskBytes(tid);
  if (!before) SKIP_TEST("the kernel keeps no account (CONFIG_TASK_IO_ACCOUNTING)");
  CHECK(!ReadDiskBytes(-1));
  char path[] = "/var/tmp/perfkit_read_XXXXXX";
  const int file = mkostemp(path, O_CLOEXEC);
  REQUIRE(file >= 0);
  unlink(path);
  std::vector<char> piece(1 << 20, 'x');
  REQUIRE(write(file, piece.data(), piece.size()) == static_cast<ssize_t>(piece.size()));
  fsync(file);
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  REQUIRE(pread(file, piece.data(), piece.size(), 0) == static_cast<ssize_t>(piece.size()));
  close(file);
  const std::optional<uint64_t> after = ReadDiskBytes(tid);
  REQUIRE(after);
  if (*after == *before) SKIP_TEST("files in /var/tmp are on no disk");
  CHECK(*after - *before >= 1 << 19);
}

}  // namespace
}  // namespace perfkit::proc
