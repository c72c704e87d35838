// What a session gives up to limit its memory.
#include "src/session/reductions.h"

#include <perfkit/frame_counter.h>
#include <perfkit/task_counter.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "src/session/thread_table.h"
#include "tests/session/support.h"

namespace perfkit::session {
namespace {

using Strings = std::vector<std::string>;

TEST_CASE("each kind of reduction is noted once, with its times", "[reductions]") {
  Reductions reductions;
  reductions.Start(10'000'000);
  reductions.Note({}, 20'000'000);
  CHECK(reductions.Notes().empty());
  reductions.Note({.times = 5}, 30'000'000);
  reductions.Note({.times = 5}, 40'000'000);
  const std::string merged =
      "10.0 to 20.0 ms after the start, because of SessionOptions::memory_bytes: older samples were merged, and have "
      "no times";
  CHECK(reductions.Notes() == Strings{merged});
  reductions.Note({.times = 7, .addresses = 1}, 50'000'000);
  reductions.Note({.times = 9, .addresses = 1, .threads = 512}, 60'000'000);
  const Strings notes = reductions.Notes();
  REQUIRE(notes.size() == 3);
  CHECK(notes[0] == merged + "; again 2 times, the last time 50.0 ms after the start");
  CHECK(notes[1].starts_with(
      "30.0 to 40.0 ms after the start, because of SessionOptions::memory_bytes: new addresses became"));
  CHECK(notes[2] ==
        "40.0 to 50.0 ms after the start, because of the limit of ended threads: those that ended early were summed up "
        "by name");
  reductions.Note({.threads = 512}, 70'000'000);  // a snapshot has forgotten the rest
  reductions.Note({.times = 3, .threads = 512}, 80'000'000);
  CHECK(reductions.Notes()[0] == merged + "; again 3 times, the last time 70.0 ms after the start");
  reductions.Note({.dumps = 1, .stacks = 1, .zones = 1, .task_parts = 1}, 90'000'000);
  CHECK(reductions.Notes().size() == 7);
}

TEST_CASE("a session says when it began to merge samples", "[session][reductions][law]") {
  absl::StatusOr<Session> session = Session::Start({.events = {{.event = "page-faults", .rate = Period{1}}},
                                                    .stacks = SessionStacks::kNone,
                                                    .memory_bytes = 64 << 10,
                                                    .own_thread = false});
  REQUIRE(session.status() == absl::OkStatus());
  const auto is_merging = [](const std::string& note) {
    return note.find("because of SessionOptions::memory_bytes: older samples were merged") != note.npos;
  };
  const absl::StatusOr<Profile> before = session->Snapshot();
  REQUIRE(before.status() == absl::OkStatus());
  if (before->accounting.times_forgotten == 0) CHECK(std::ranges::none_of(before->accounting.notes, is_merging));
  Fault(4000);
  const absl::StatusOr<Profile> after = session->Stop();
  REQUIRE(after.status() == absl::OkStatus());
  CHECK(after->accounting.times_forgotten > 0);
  CHECK(std::ranges::any_of(after->accounting.notes, is_merging));
}

TEST_CASE("what is dropped of threads that are summed up is not dropped for want of memory",
          "[session][reductions][law]") {
  FrameCounter frames({.events = {"task-clock"}});
  TaskCounter tasks({.events = {"task-clock"}});
  absl::StatusOr<Session> session = Session::Start({.events = {{.event = "page-faults", .rate = Period{1}}},
                                                    .stacks = SessionStacks::kNone,
                                                    .frames = &frames,
                                                    .tasks = &tasks,
                                                    .own_thread = false});
  REQUIRE(session.status() == absl::OkStatus());
  for (size_t i = 0; i <= ThreadTable::kMaxEnded; ++i) {
    std::thread([&] {
      TaskCounter::Task task = tasks.Create({"short"});
      task.Resume();
      {
        PERFKIT_ZONE(frames, "short");
        Fault(1);
      }
      task.Suspend();
    }).join();
    if (i % 100 == 0) CHECK(session->Poll() == absl::OkStatus());
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CHECK(profile->accounting.times_forgotten > 0);
  CHECK(profile->accounting.zones_forgotten > 0);
  CHECK(profile->accounting.task_parts_forgotten > 0);
  CHECK(std::ranges::any_of(profile->accounting.notes, [](const std::string& note) {
    return note.find("because of the limit of ended threads") != note.npos;
  }));
  CHECK(std::ranges::none_of(profile->accounting.notes, [](const std::string& note) {
    return note.find("SessionOptions::memory_bytes") != note.npos;
  }));
}

}  // namespace
}  // namespace perfkit::session
