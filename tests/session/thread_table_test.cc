// Threads by number, from records that are told of twice, or never.
#include "src/session/thread_table.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace perfkit::session {
namespace {

constexpr uint32_t kThreadPid = 10;

struct NamedThreads {
  ProfileBuilder builder;
  ThreadTable threads{builder};
  uint64_t moved = 0;  // threads that became part of a sum

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

TEST_CASE("the end of an unknown thread has no effect", "[thread_table]") {
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

// Starts and ends threads of the numbers 100 to 1,099 in turn, at one time each.
uint64_t ComeAndGo(NamedThreads& table, uint64_t count, uint64_t time_ns, std::string_view name) {
  for (uint64_t i = 0; i < count; ++i, ++time_ns) {
    const auto tid = static_cast<uint32_t>(100 + time_ns % 1000);
    table.threads.Forked(kThreadPid, tid, 10, time_ns);
    table.threads.Renamed(kThreadPid, tid, name, time_ns);
    table.threads.Exited(kThreadPid, tid, time_ns);
    for (size_t thread = 0; const uint32_t now : table.threads.Retire()) table.moved += now != thread++ ? 1 : 0;
  }
  return time_ns;
}

TEST_CASE("threads that ended long ago are summed up by name", "[thread_table]") {
  constexpr uint64_t kEnded = 20'000;
  NamedThreads table;
  table.threads.Renamed(kThreadPid, 10, "main", 1);
  table.threads.Forked(kThreadPid, 5000, 10, 1);
  table.threads.Renamed(kThreadPid, 5000, "worker", 1);
  ComeAndGo(table, kEnded, 2, "worker");
  const Profile& profile = table.builder.profile();
  CHECK(profile.threads.size() <= ThreadTable::kMaxEnded + 4);
  const uint32_t live = table.threads.IndexOf(kThreadPid, 5000, kEnded);
  CHECK(table.At(live).tid == 5000);
  CHECK(table.At(live).ended == 0);
  uint64_t sums = 0, singles = 0;
  std::vector<bool> is_unused(profile.threads.size());
  for (const uint32_t unused : table.threads.unused()) is_unused[unused] = true;
  for (uint32_t i = 0; i < profile.threads.size(); ++i) {
    if (is_unused[i]) continue;
    sums += table.At(i).ended;
    singles += table.At(i).ended == 0 ? 1 : 0;
    if (table.At(i).ended == 0) continue;
    CHECK(table.NameOf(i) == "worker");
    CHECK(table.At(i).tid == ProfileThread::kFirstSum);
    CHECK(table.At(i).first_ns == 2);
    CHECK(profile.ThreadName(i).ends_with(" ended threads)"));
  }
  CHECK(sums == table.threads.retired());
  CHECK(sums == table.moved);
  CHECK(sums + singles == kEnded + 2);
}

TEST_CASE("records of a thread that ended come to its sum, later ones to another thread", "[thread_table]") {
  NamedThreads table;
  table.threads.Forked(kThreadPid, 11, 10, 1);
  table.threads.Exited(kThreadPid, 11, 2);
  const uint64_t now_ns = ComeAndGo(table, ThreadTable::kMaxEnded, 3, "");
  const uint32_t sum = table.threads.IndexOf(kThreadPid, 11, 2);
  CHECK(table.At(sum).ended != 0);
  const uint32_t later = table.threads.IndexOf(kThreadPid, 11, now_ns);
  CHECK(table.At(later).ended == 0);
  CHECK(table.At(later).tid == 11);
  CHECK(sum != later);
  CHECK(table.threads.IndexOf(kThreadPid, 11, now_ns + 1) == later);
}

TEST_CASE("a flight recorder reads samples of threads that are sums for long", "[thread_table]") {
  NamedThreads table;
  table.threads.Forked(kThreadPid, 11, 10, 1);
  table.threads.Renamed(kThreadPid, 11, "worker", 1);
  table.threads.Exited(kThreadPid, 11, 2);
  constexpr uint64_t kLaterNs = 60'000'000'000;
  const uint64_t now_ns = ComeAndGo(table, 2 * ThreadTable::kMaxEnded, kLaterNs, "worker");
  const size_t rows = table.builder.profile().threads.size();
  const uint32_t sum = table.threads.IndexOf(kThreadPid, 11, 2);
  CHECK(table.At(sum).ended != 0);
  CHECK(table.NameOf(sum) == "worker");
  CHECK(table.builder.profile().threads.size() == rows);
  // But not for ever: there may be any number of tids.
  uint32_t tid = 2000;
  for (const uint32_t end = tid + 2 * ThreadTable::kMaxLate; tid < end; ++tid) {
    table.threads.Forked(kThreadPid, tid, 10, now_ns + tid);
    table.threads.Exited(kThreadPid, tid, now_ns + tid);
    table.threads.Retire();
  }
  CHECK_FALSE(table.At(table.threads.IndexOf(kThreadPid, 11, 2)).is_sum());
}

TEST_CASE("threads of ever new processes are summed up by name", "[thread_table]") {
  constexpr uint32_t kProcesses = 20'000;
  NamedThreads table;
  for (uint32_t pid = 1; pid <= kProcesses; ++pid) {
    table.threads.Forked(pid, pid, 0, pid);
    table.threads.Renamed(pid, pid, pid % 2 == 0 ? "cc1" : "as", pid);
    table.threads.Exited(pid, pid, pid);
    table.threads.Retire();
  }
  uint64_t sums = 0;
  for (const ProfileThread& thread : table.builder.profile().threads) {
    if (!thread.is_sum()) continue;
    ++sums;
    CHECK(thread.pid == 0);
  }
  CHECK(sums == 2);
  CHECK(table.threads.retired() + ThreadTable::kMaxEnded >= kProcesses);
}

TEST_CASE("a thread that no record tells of has the name that is found for it, once", "[thread_table]") {
  static int asked;
  asked = 0;
  ProfileBuilder builder;
  ThreadTable threads(builder, [](uint32_t pid, uint32_t tid) {
    ++asked;
    return std::to_string(pid) + "/" + std::to_string(tid);
  });
  const uint32_t found = threads.IndexOf(kThreadPid, 11, 1);
  CHECK(threads.IndexOf(kThreadPid, 11, 2) == found);
  CHECK(builder.profile().strings[builder.profile().threads[found].name] == "10/11");
  threads.Forked(kThreadPid, 12, 11, 3);
  threads.IndexOf(kThreadPid, 12, 4);
  CHECK(asked == 1);
  threads.Exited(kThreadPid, 11, 5);
  CHECK(threads.IndexOf(kThreadPid, 11, 6) != found);
  CHECK(asked == 2);
}

TEST_CASE("a thread that existed before has an entry once it does something, and then its name", "[thread_table]") {
  NamedThreads table;
  table.threads.Existed(kThreadPid, 11, "idle");
  table.threads.Existed(kThreadPid, 12, "parent");
  table.threads.Existed(kThreadPid, 13, "ended");
  CHECK(table.builder.profile().threads.empty());
  table.threads.Forked(kThreadPid, 14, 12, 3);
  CHECK(table.NameOf(table.threads.IndexOf(kThreadPid, 14, 4)) == "parent");
  table.threads.Exited(kThreadPid, 13, 5);
  CHECK(table.NameOf(table.threads.IndexOf(kThreadPid, 13, 5)) == "ended");  // what comes late
  table.threads.Forked(kThreadPid, 11, 14, 6);  // its number is used again
  CHECK(table.NameOf(table.threads.IndexOf(kThreadPid, 11, 7)) == "parent");
  CHECK(table.NameOf(table.threads.IndexOf(kThreadPid + 1, 12, 7)) == "");  // of another process
  table.threads.Existed(kThreadPid, 14, "told twice");
  CHECK(table.NameOf(table.threads.IndexOf(kThreadPid, 14, 8)) == "parent");
}

TEST_CASE("threads of ever new names are summed up without a name", "[thread_table]") {
  NamedThreads table;
  uint64_t time_ns = 1;
  for (uint32_t i = 0; i < 20'000; ++i) time_ns = ComeAndGo(table, 1, time_ns, std::to_string(i));
  uint32_t sums = 0, unnamed = 0;
  for (const ProfileThread& thread : table.builder.profile().threads) {
    sums += thread.tid >= ProfileThread::kFirstSum ? 1 : 0;
    if (thread.tid >= ProfileThread::kFirstSum && thread.name == 0) unnamed += thread.ended;
  }
  CHECK(sums == ThreadTable::kMaxSums + 1);
  CHECK(unnamed == table.threads.retired() - ThreadTable::kMaxSums);
}

}  // namespace
}  // namespace perfkit::session
