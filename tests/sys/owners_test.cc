// Owners of descriptors and mappings: each lets go once, when it must.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <utility>

#include "src/sys/fd.h"
#include "src/sys/mapping.h"
#include "tests/support/fake_kernel.h"

namespace perfkit::sys {
namespace {

using testing::Call;
using testing::FakeKernel;

int OpenNull() { return kernel().open("/dev/null", O_RDONLY); }

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

bool IsMapped(const void* at) {
  unsigned char resident;
  return mincore(const_cast<void*>(at), 1, &resident) == 0;
}

TEST_CASE("a descriptor is closed once, by its last owner", "[fd]") {
  FakeKernel fake;
  const int number = OpenNull();
  {
    OwnedFd first(number);
    OwnedFd second(std::move(first));
    CHECK_FALSE(first);
    CHECK(second.get() == number);
    OwnedFd third;
    third = std::move(second);
    CHECK(third);
    CHECK(IsOpen(number));
    CHECK(fake.calls(Call::kClose) == 0);
  }
  CHECK_FALSE(IsOpen(number));
  CHECK(fake.calls(Call::kClose) == 1);
  CHECK(fake.Leaks() == "");
}

TEST_CASE("what an owner had before is closed when it takes another", "[fd]") {
  FakeKernel fake;
  OwnedFd owner(OpenNull());
  const int before = owner.get();
  owner = OwnedFd(OpenNull());
  CHECK_FALSE(IsOpen(before));
  OwnedFd& same = owner;
  owner = std::move(same);
  CHECK(IsOpen(owner.get()));
  owner.Reset();
  owner.Reset();
  CHECK(fake.Leaks() == "");
}

TEST_CASE("descriptor 0 is one like any other, and -1 is none", "[fd]") {
  FakeKernel fake;
  static int closed;
  closed = -2;
  fake.below().close = [](int fd) {
    closed = fd;
    return 0;
  };
  { const OwnedFd none; }
  CHECK(closed == -2);
  { const OwnedFd zero(0); }
  CHECK(closed == 0);
}

TEST_CASE("every descriptor that the table opens is closed at exec", "[fd]") {
  const OwnedFd fd(OpenNull());
  CHECK((fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a mapping shows the file, and is unmapped once", "[mapping]") {
  FakeKernel fake;
  const OwnedFd program(kernel().open("/proc/self/exe", O_RDONLY));
  const std::byte* at;
  {
    std::optional<Mapping> mapping = Mapping::ReadOnly(program.get(), PageSize());
    REQUIRE(mapping);
    CHECK(mapping->size() == PageSize());
    CHECK(mapping->bytes()[0] == std::byte{0x7f});
    CHECK(mapping->bytes()[1] == std::byte{'E'});
    Mapping moved = *std::move(mapping);
    Mapping assigned;
    assigned = std::move(moved);
    CHECK(moved.data() == nullptr);
    at = assigned.data();
    CHECK(IsMapped(at));
  }
  CHECK_FALSE(IsMapped(at));
  CHECK(fake.calls(Call::kMunmap) == 1);
  CHECK(fake.Leaks() == "descriptor " + std::to_string(program.get()) + " of open; ");
}

TEST_CASE("own memory is zero and writable", "[mapping]") {
  std::optional<Mapping> mapping = Mapping::Anonymous(3 * PageSize());
  REQUIRE(mapping);
  CHECK(mapping->size() == 3 * PageSize());
  CHECK(mapping->data()[3 * PageSize() - 1] == std::byte{0});
  mapping->data()[0] = std::byte{1};
}

TEST_CASE("a forgotten mapping stays where it is", "[mapping]") {
  void* at;
  {
    std::optional<Mapping> mapping = Mapping::Anonymous(PageSize());
    REQUIRE(mapping);
    at = mapping->data();
    mapping->Forget();
  }
  CHECK(IsMapped(at));
  munmap(at, PageSize());
}

TEST_CASE("a mapping that fails is nothing, with errno", "[mapping]") {
  errno = 0;
  CHECK_FALSE(Mapping::ReadOnly(-1, PageSize()));
  CHECK(errno == EBADF);
}

}  // namespace
}  // namespace perfkit::sys
