// What existed before a sampler, in a process whose files are not those of its mappings any more.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>

#include "tests/sample/support.h"
#include "tests/support/made_elf.h"
#include "tests/support/own_mounts.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"

namespace perfkit {
namespace {

bool MountAndWrite(const std::string& folder, const std::string& path, char id) {
  if (!testing::MountEmpty(folder)) return false;
  const testing::MadeElf made{.functions = {"made"}, .build_id = std::string(20, id)};
  std::ofstream(path, std::ios::binary) << testing::MakeLibrary(made);
  return true;
}

// Maps the code of a library, and then lives with another one at the same path: with the same inode, as the numbers of
// a tmpfs begin with the same ones, but on another file system. Writes one byte to `told`: '1' if it has done so.
[[noreturn]] void LiveInContainer(const std::string& folder, int told) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string path = folder + "/made.so";
  bool done = testing::OwnMounts() && MountAndWrite(folder, path, 'A');
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  done = done && mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) != MAP_FAILED;
  close(file);
  done = done && MountAndWrite(folder, path, 'B');
  (void)!write(told, done ? "1" : "0", 1);
  for (;;) pause();
}

TEST_CASE("a mapping has not the build-id of another file at its path", "[side_band][root]") {
  if (geteuid() != 0) SKIP_TEST("mounting takes root");
  const testing::TempFolder folder;
  int told[2] = {-1, -1};
  REQUIRE(pipe(told) == 0);
  const pid_t child = fork();
  if (child == 0) LiveInContainer(folder.path(), told[1]);
  char done = '0';
  REQUIRE(read(told[0], &done, 1) == 1);
  close(told[0]), close(told[1]);
  size_t mapped = 0, wrong = 0;
  SamplerOptions options;
  options.side_band = true;
  auto sampler = Sampler::Open(options, Target::Process(child));
  if (done == '1') {
    REQUIRE(sampler.ok());
    REQUIRE(sampler->Start().ok());
    sampler->Drain([&](const SamplerRecord& record) {
      Dispatch(record, sampler->layout(),
               Overloaded{[&](const MmapRecord& map) {
                            if (!map.name.ends_with("/made.so")) return;
                            ++mapped;
                            wrong += !map.build_id.empty() && map.build_id[0] != std::byte{'A'};
                          },
                          [](auto&&) {}});
    });
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (done != '1') SKIP_TEST("no file system can be mounted");
  CHECK(mapped == 1);
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace perfkit
