// Names of locks, by the variables of the modules that are mapped.
#include "src/session/lock_names.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "src/sys/mapping.h"
#include "tests/support/own_mounts.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"

int lock_names_test_variable[2] = {1, 2};

namespace perfkit::session {
namespace {

TEST_CASE("locks have the names of the variables that they are in", "[lock_names]") {
  LockNames names;
  static int hidden = 1;
  const auto heap = std::make_unique<int>(1);
  const auto address_of = [](const void* of) { return reinterpret_cast<uintptr_t>(of); };
  const std::vector<uint64_t> addresses = {address_of(lock_names_test_variable),
                                           address_of(&lock_names_test_variable[1]), address_of(&hidden),
                                           address_of(heap.get()), address_of(&names)};
  CHECK(names.Find(addresses[0]).name.empty());
  names.LookUp(addresses);
  CHECK(names.Find(addresses[0]).name == "lock_names_test_variable in session_test");
  CHECK(names.Find(addresses[1]).name == "lock_names_test_variable+0x4 in session_test");
  CHECK_THAT(std::string(names.Find(addresses[2]).name),
             Catch::Contains("hidden") && Catch::EndsWith(" in session_test"));
  CHECK(names.Find(addresses[3]).name.empty());
  CHECK(names.Find(addresses[4]).name.empty());
}

// perfkit itself maps files of modules, to read them.
TEST_CASE("a lock in a library has its name although the library's file is mapped once more", "[lock_names]") {
  const void* const variable = dlsym(RTLD_DEFAULT, "_IO_2_1_stdout_");
  Dl_info info{};
  if (variable == nullptr || dladdr(variable, &info) == 0) SKIP_TEST("the C library has no such variable");
  const uint64_t address = reinterpret_cast<uintptr_t>(variable);
  LockNames before, after;
  before.LookUp({&address, 1});
  CHECK_THAT(std::string(before.Find(address).name), Catch::StartsWith("_IO_2_1_stdout_ in "));
  const int fd = open(info.dli_fname, O_RDONLY);
  REQUIRE(fd >= 0);
  constexpr size_t kBytes = 64 << 20;  // too large for a gap between libraries: it comes below them
  void* const mapping = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  REQUIRE(mapping != MAP_FAILED);
  after.LookUp({&address, 1});
  munmap(mapping, kBytes);
  CHECK(after.Find(address).name == before.Find(address).name);
}

// A copy of the math library, and a variable of it. The program has loaded the library, but not the copy.
class LoadedCopy {
 public:
  LoadedCopy() {
    Dl_info info{};
    void* const original = dlsym(RTLD_DEFAULT, "signgam");
    if (original == nullptr || dladdr(original, &info) == 0) return;
    const std::string path = folder_.path() + "/copy.so";
    std::filesystem::copy_file(info.dli_fname, path);
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) variable_ = dlsym(handle_, "signgam");
  }
  // Unloads it, and puts anonymous memory in its place. Returns false if its memory is still in use.
  bool Replace() {
    const size_t size = sys::PageSize();
    dlclose(handle_);
    void* const page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(variable_) & ~uintptr_t{size - 1});
    return mmap(page, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == page;
  }
  uint64_t address() const { return reinterpret_cast<uintptr_t>(variable_); }

 private:
  testing::TempFolder folder_;
  void* handle_ = nullptr;
  void* variable_ = nullptr;
};

// Loads a library, and then has another one at its path, with the same inode on another file system. Returns 0 if its
// variable has no name then, 1 if it has, 2 if nothing can be mounted.
int NameInContainer(const std::string& folder, const std::string& library, const std::string& other) {
  const std::string path = folder + "/copy.so";
  const auto mount_and_copy = [&](const std::string& from) {
    if (!testing::MountEmpty(folder)) return false;
    std::error_code failed;
    return std::filesystem::copy_file(from, path, failed);
  };
  if (!testing::OwnMounts() || !mount_and_copy(library)) return 2;
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const variable = handle == nullptr ? nullptr : dlsym(handle, "signgam");
  if (variable == nullptr || !mount_and_copy(other)) return 2;
  const uint64_t address = reinterpret_cast<uintptr_t>(variable);
  LockNames names;
  names.LookUp({&address, 1});
  return names.Find(address).name.empty() ? 0 : 1;
}

TEST_CASE("a lock has no name of another file system's file at its library's path", "[lock_names][root]") {
  if (geteuid() != 0) SKIP_TEST("mounting takes root");
  Dl_info math{}, c{};
  void* const in_math = dlsym(RTLD_DEFAULT, "signgam");
  void* const in_c = dlsym(RTLD_DEFAULT, "_IO_2_1_stdout_");
  const bool known = in_math != nullptr && in_c != nullptr && dladdr(in_math, &math) != 0 && dladdr(in_c, &c) != 0;
  if (!known) SKIP_TEST("no math library with signgam");
  const testing::TempFolder folder;
  const pid_t child = fork();
  if (child == 0) _exit(NameInContainer(folder.path(), math.dli_fname, c.dli_fname));
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) SKIP_TEST("no file system can be mounted");
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("memory that was a library's has not the name of its variable", "[lock_names]") {
  LoadedCopy copy;
  const uint64_t address = copy.address();
  if (address == 0) SKIP_TEST("no math library with signgam");
  LockNames names;
  names.LookUp({&address, 1});
  CHECK(names.Find(address).name.ends_with("signgam in copy.so"));  // It has two names.
  names.LookUp({&address, 1});
  CHECK(names.Find(address).name.ends_with("signgam in copy.so"));
  if (!copy.Replace()) SKIP_TEST("the library stays loaded");
  names.LookUp({&address, 1});
  CHECK(names.Find(address).name.empty());
}

}  // namespace
}  // namespace perfkit::session
