// Forks while another thread looks at loaded modules: the child must be able to look at them, too.
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "src/unwind/dwarf/live/loaded_modules.h"
#include "tests/support/work.h"

namespace perfkit::unwind {
namespace {

int CountModule(dl_phdr_info*, size_t, void* count) {
  ++*static_cast<int*>(count);
  return 0;
}

// A child that waits for ever is ended by its alarm.
int StatusOfChild() {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    int modules = 0;
    dl_iterate_phdr(CountModule, &modules);
    _exit(modules > 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST_CASE("a forked child can look at loaded modules, whatever a thread of the parent was doing", "[live][fork][law]") {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> looks{0};
  std::thread looking([&] {
    const auto all = [](const LoadedModule&) { return true; };
    for (; !stop; ++looks) {
      (void)LookAtLoaded(all, SIZE_MAX);
      (void)CountLoaded();
    }
  });
  int status = 0;
  for (int i = 0; i < (testing::kSanitized ? 20 : 100) && status == 0; ++i) status = StatusOfChild();
  while (looks == 0) std::this_thread::yield();
  stop = true;
  looking.join();
  CHECK(status == 0);
}

}  // namespace
}  // namespace perfkit::unwind
