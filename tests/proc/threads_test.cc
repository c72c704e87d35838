// Thread lists, against threads that the test starts itself.
#include "src/proc/threads.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/as_user.h"
#include "tests/support/temp_folder.h"
#include "tests/support/work.h"

namespace perfkit::proc {
namespace {

pid_t Tid() { return static_cast<pid_t>(syscall(SYS_gettid)); }

TEST_CASE("names that are no thread ids are passed over", "[threads]") {
  const std::vector<std::string> names = {
      "12", "7", "", "-3", "0", "1x", " 4", "../../etc", "99999999999999", "007", "+5", "2147483647"};
  CHECK(ParseTaskNames(names) == std::vector<pid_t>{7, 7, 12, 2147483647});
  CHECK(ParseTaskNames({}).empty());
}

TEST_CASE("every thread of this process is listed, by number and as self", "[threads][law]") {
  constexpr int kThreads = 5;
  std::atomic<int> ready{0};
  std::atomic<bool> done{false};
  pid_t first = 0;
  std::thread([&first] { first = Tid(); }).join();  // a sanitizer starts a thread of its own with our first
  testing::AwaitEnd(first);
  std::vector<pid_t> all = ListThreads(0).value();
  std::vector<pid_t> started(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      started[static_cast<size_t>(i)] = Tid();
      ++ready;
      done.wait(false);
    });
  }
  while (ready < kThreads) std::this_thread::yield();
  CHECK((testing::kSanitized || all == std::vector{Tid()}));
  all.insert(all.end(), started.begin(), started.end());
  std::sort(all.begin(), all.end());
  CHECK(ListThreads(0).value() == all);
  CHECK(ListThreads(getpid()).value() == all);
  done = true;
  done.notify_all();
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("a process that is not there is named", "[threads]") {
  const auto none = ListThreads(0x7ffffffe);
  CHECK(absl::IsNotFound(none.status()));
  CHECK(none.status().ToString().find("2147483646") != std::string::npos);
  CHECK(absl::IsNotFound(ListThreads(-1).status()));
}

TEST_CASE("for this process, a folder that is not there is named", "[threads]") {
  const absl::Status none = ListThreads(0, "/nonexistent").status();
  CHECK(absl::IsNotFound(none));
  CHECK(std::string(none.message()).find("/nonexistent/self/task") != std::string::npos);
}

TEST_CASE("without procfs, a process is not said to be missing", "[threads]") {
  for (const pid_t pid : {0, 1}) {
    const absl::Status status = ListThreads(pid, "/nonexistent").status();
    CHECK(absl::IsNotFound(status));
    CHECK(std::string(status.message()).ends_with("Remedy: as root: mount -t proc proc /nonexistent."));
  }
}

TEST_CASE("procfs of another pid namespace is told by its ids", "[threads]") {
  CHECK_FALSE(ShowsOtherIds("/nonexistent"));
  const testing::TempFolder proc;
  const std::string own = std::to_string(getpid()), other = std::to_string(getpid() + 1);
  const auto shows_others = [&](const std::string& status) {
    proc.Write("/self/status", "Name:\tx\n" + status);
    return ShowsOtherIds(proc.path());
  };
  CHECK_FALSE(shows_others("Pid:\t" + own + "\nNSpid:\t" + own + "\n"));
  CHECK(shows_others("Pid:\t" + other + "\nNSpid:\t" + other + "\t" + own + "\n"));
  CHECK(shows_others("Pid:\t" + own + "\nNSpid:\t" + own + "\t" + own + "\n"));  // the same number by chance
  CHECK(shows_others("Pid:\t" + other + "\n"));                                  // before Linux 4.1
  CHECK_FALSE(shows_others("Pid:\t" + own + "\n"));
  CHECK_FALSE(shows_others(""));
}

TEST_CASE("an ordinary user may list other users' threads", "[threads]") {
  CHECK(testing::AsOrdinaryUser([] {
    const auto threads = ListThreads(1);
    return threads.ok() ? std::count(threads->begin(), threads->end(), 1) == 1 : absl::IsNotFound(threads.status());
  }));
}

TEST_CASE("the user of a thread is its real one, dumpable or not", "[threads]") {
  CHECK(UserOf(Tid()) == getuid());
  CHECK(testing::AsOrdinaryUser([] {
    const bool dumpable = UserOf(Tid()) == getuid();
    prctl(PR_SET_DUMPABLE, 0);
    return dumpable && UserOf(Tid()) == getuid();
  }));
  CHECK_FALSE(UserOf(0x7ffffffe));
  const testing::TempFolder proc;
  proc.Write("/7/status", "Name:\tUid:\t3\nUid:\t1000\t0\t0\t0\n");
  CHECK(UserOf(7, proc.path()) == 1000u);
  proc.Write("/7/status", "Name:\tx\nUid:\tnobody\n");
  CHECK_FALSE(UserOf(7, proc.path()));
}

}  // namespace
}  // namespace perfkit::proc
