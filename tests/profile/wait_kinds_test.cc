// Causes of waits that are neither for a lock of this program nor for a disk.
#include <sys/syscall.h>

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/profile/hitching.h"

namespace perfkit::profile {
namespace {

using Kind = FrameCause::Kind;
using Confidence = FrameCause::Confidence;

TEST_CASE("a pipe waits for its other end, and a file's lock for its holder", "[profile][causes]") {
  struct Case {
    int64_t syscall;
    const char* detail;
    Kind kind;
    const char* text;  // if no thread is known
  };
  const Case wait = GENERATE(
      Case{SYS_read, "read of descriptor 3 (pipe:[12])", Kind::kOtherThread,
           "waited in Render() for another thread or program to write it: read of"},
      Case{SYS_write, "write to descriptor 3 (FIFO /tmp/in)", Kind::kOtherThread,
           "waited in Render() for another thread or program to read it: write to"},
      Case{SYS_flock, "file lock of descriptor 4 (/tmp/lock)", Kind::kFileLock,
           "file lock of descriptor 4 (/tmp/lock), wanted in Render()"},
      Case{SYS_read, "read of descriptor 3 (/tmp/file)", Kind::kIo, "read of descriptor 3 (/tmp/file) in Render()"},
      Case{426, "io_uring of descriptor 5 (anon_inode:[io_uring])", Kind::kIo,
           "io_uring of descriptor 5 (anon_inode:[io_uring]) in Render()"});
  const bool has_waker = GENERATE(false, true);
  Hitching game;
  game.Run(4);
  ProfileWait blocked = game.Call(wait.syscall, wait.detail, 8);
  if (has_waker) blocked.waker = game.builder().String("worker (2)");
  game.Wait(9, blocked, game.render());
  const std::vector<FrameCause> causes = game.Causes();
  CAPTURE(game.text());
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].kind == wait.kind);
  const bool blames = has_waker && wait.kind != Kind::kIo;
  CHECK(causes[0].thread == (blames ? game.worker() : FrameCause::kNoThread));
  CHECK(causes[0].remedy.empty() == (has_waker || wait.kind == Kind::kIo));
  if (!has_waker) CHECK(causes[0].confidence == Confidence::kKnown);
  if (!has_waker) CHECK(game.text().find(wait.text) != std::string::npos);
  if (blames) CHECK(game.text().find("worker (2)") != std::string::npos);
}

TEST_CASE("a thread that a debugger stopped waited for no memory", "[profile][causes]") {
  Hitching game;
  const std::string_view by = GENERATE(ProfileWait::kTraced, ProfileWait::kStopped);
  game.Run(4);
  game.Wait(9, game.Call(-1, std::string(by).c_str(), 8), game.render());
  const std::vector<FrameCause> causes = game.Causes();
  REQUIRE(causes.size() == 1);
  CHECK((causes[0].kind == Kind::kSystemCall && causes[0].what == by));
  CHECK(game.text().find("waited in Render(): " + std::string(by)) != std::string::npos);
}

}  // namespace
}  // namespace perfkit::profile
