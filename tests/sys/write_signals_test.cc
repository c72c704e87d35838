// Writes that the kernel answers with a signal: they fail, and the program lives.
#include "src/sys/write_signals.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <string>

#include "src/sys/edit_file.h"
#include "src/sys/new_file.h"
#include "tests/support/temp_folder.h"
#include "tests/sys/in_child.h"

namespace perfkit::sys {
namespace {

using testing::InChild;
using testing::TempFolder;

// Returns the set of the signals that are blocked on this thread.
uint64_t Blocked() {
  sigset_t set;
  sigprocmask(SIG_BLOCK, nullptr, &set);
  uint64_t bits = 0;
  for (int signal = 1; signal < 64; ++signal) bits |= uint64_t{sigismember(&set, signal) == 1} << signal;
  return bits;
}
bool IsPending(int signal) {
  sigset_t set;
  return sigpending(&set) == 0 && sigismember(&set, signal) == 1;
}
void Block(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

void LimitFiles() {
  const rlimit limit{.rlim_cur = 1000, .rlim_max = 1000};
  setrlimit(RLIMIT_FSIZE, &limit);
}

// Returns a pipe's end for writing, without a reader.
int UnreadPipe() {
  int ends[2] = {-1, -1};
  if (pipe(ends) == 0) close(ends[0]);
  return ends[1];
}

std::string Text() { return std::string(100'000, 'x'); }

absl::Status WriteText(const std::string& path) {
  return WriteFile(path, [](ByteSink sink) { return sink(Text()); });
}

TEST_CASE("a file beyond RLIMIT_FSIZE is an error, and leaves nothing", "[files][signals]") {
  const TempFolder folder;
  const auto fails = [&] {
    LimitFiles();
    const uint64_t blocked = Blocked();
    const absl::Status written = WriteText(folder.path() + "/file");
    const absl::Status edited =
        EditFile(folder.path() + "/edited", [](const std::string&) -> absl::StatusOr<std::string> { return Text(); });
    for (const absl::Status& status : {written, edited}) {
      if (status.message().find("File too large") == std::string_view::npos) return false;
    }
    return Blocked() == blocked && !IsPending(SIGXFSZ);
  };
  CHECK(InChild(fails) == 0);
  CHECK(access((folder.path() + "/file").c_str(), F_OK) != 0);
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    CHECK(entry.path().filename() == "edited");  // EditFile creates it, empty, for its lock.
    ++files;
  }
  CHECK(files == 1);
}

TEST_CASE("a pipe without a reader is an error", "[files][signals]") {
  const auto fails = [](bool blocks) {
    if (blocks) Block(SIGPIPE);
    const uint64_t blocked = Blocked();
    const absl::Status status = WriteText("/proc/self/fd/" + std::to_string(UnreadPipe()));
    return status.message().find("Broken pipe") != std::string_view::npos && Blocked() == blocked &&
           !IsPending(SIGPIPE);
  };
  CHECK(InChild([&] { return fails(false); }) == 0);
  CHECK(InChild([&] { return fails(true); }) == 0);
}

TEST_CASE("a signal that was pending before a write stays so", "[signals]") {
  const auto keeps = [] {
    Block(SIGPIPE);
    raise(SIGPIPE);
    const absl::Status status = WriteAll(UnreadPipe(), "pipe", "text");
    return !status.ok() && IsPending(SIGPIPE);
  };
  CHECK(InChild(keeps) == 0);
}

TEST_CASE("writes outside of a guard raise their signals, also after one", "[signals]") {
  const auto writes = [] {
    const int fd = UnreadPipe();
    (void)WriteAll(fd, "pipe", "text");
    return write(fd, "text", 4) == 4;
  };
  CHECK(InChild(writes) == 1000 + SIGPIPE);
}

}  // namespace
}  // namespace perfkit::sys
