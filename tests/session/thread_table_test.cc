// Threads by number, from records that are told of twice, or never.
#include "src/session/thread_table.h"

#include <catch2/catch.hpp>

namespace perfkit::session {
namespace {

constexpr uint32_t kThreadPid = 10;

struct NamedThreads {
  ProfileBuilder builder;
  ThreadTable threads{builder};

  const ProfileThread& At(uint32_t index) const { return builder.profile().threads[index]; }
  std::string NameOf(uint32_t index) const { return builder.profile().strings[At(index).name]; }
};

TEST_CASE("a number that is used again is another thread", "[thread_table]") {
  NamedThreads table;
  table.threads.Renamed(kThreadPid, 10, "main", 1);
  table.threads.Forked(kThreadPid, 11, 10, 5);
  const uint32_t first = table.threads.IndexOf(kThreadPid, 11, 6);
  CHECK(table.NameOf(first) == "main");  // until it is renamed
  table.threads.Renamed(kThreadPid, 11, "worker", 7);
  CHECK(table.threads.Exited(kThreadPid, 11, 8) == first);
  CHECK(table.threads.IndexOf(kThreadPid, 11, 8) == first);  // what comes late
  table.threads.Forked(kThreadPid, 11, 10, 9);
  const uint32_t second = table.threads.IndexOf(kThreadPid, 11, 10);
  CHECK(second != first);
  CHECK(table.NameOf(first) == "worker");
  CHECK(table.NameOf(second) == "main");
  CHECK(table.At(first).first_ns == 5);
  CHECK(table.At(first).last_ns == 8);
  CHECK(table.At(second).first_ns == 9);
}

TEST_CASE("a number that runs on after its EXIT is another thread, though its FORK was lost", "[thread_table]") {
  NamedThreads table;
  const uint32_t first = table.threads.IndexOf(kThreadPid, 11, 5);
  table.threads.Exited(kThreadPid, 11, 8);
  CHECK(table.threads.IndexOf(kThreadPid, 11, 9) != first);
}

TEST_CASE("a thread that is told of twice is one", "[thread_table]") {
  NamedThreads table;
  table.threads.Forked(kThreadPid, 11, 10, 5);
  const uint32_t first = table.threads.IndexOf(kThreadPid, 11, 6);
  table.threads.Forked(kThreadPid, 11, 10, 4);
  CHECK(table.threads.IndexOf(kThreadPid, 11, 7) == first);
  CHECK(table.builder.profile().threads.size() == 1);
}

TEST_CASE("the end of a thread that nobody knows is nothing", "[thread_table]") {
  NamedThreads table;
  CHECK_FALSE(table.threads.Exited(kThreadPid, 11, 5));
  const uint32_t first = table.threads.IndexOf(kThreadPid, 11, 6);
  CHECK_FALSE(table.threads.Exited(kThreadPid + 1, 11, 7));
  CHECK(table.threads.Exited(kThreadPid, 11, 8) == first);
  CHECK(table.threads.Exited(kThreadPid, 11, 9) == first);
  CHECK(table.At(first).last_ns == 8);
  CHECK(table.builder.profile().threads.size() == 1);
}

TEST_CASE("a process with a thread's number is no thread of ours", "[thread_table]") {
  NamedThreads table;
  const uint32_t thread = table.threads.IndexOf(kThreadPid, 11, 5);
  const uint32_t process = table.threads.IndexOf(11, 11, 6);
  CHECK(process != thread);
  CHECK(table.At(process).pid == 11);
}

}  // namespace
}  // namespace perfkit::session
