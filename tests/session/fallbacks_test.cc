// What a session refuses, and what it does instead of what the kernel refuses.
#include <errno.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "perfkit/record.h"
#include "src/sys/kernel.h"
#include "tests/session/support.h"
#include "tests/support/fake_kernel.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> NotesAbout(const Profile& profile, std::string_view word) {
  std::vector<std::string> notes;
  for (const std::string& note : profile.accounting.notes) {
    if (note.find(word) != note.npos) notes.push_back(note);
  }
  return notes;
}

// The notes of a session with the best stacks, in order.
std::vector<std::string> StackNotes() {
  absl::StatusOr<Session> session = Session::Start({.lines = false});
  REQUIRE(session.status() == absl::OkStatus());
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  return NotesAbout(*profile, "stacks");
}

int OpenWithoutChains(const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group, unsigned long flags) {
  if ((attr->sample_type & kSampleCallchain) != 0) {
    errno = EACCES;
    return -1;
  }
  return sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
}

TEST_CASE("each kind of stacks that is not possible is noted, with its reason", "[session][fallbacks]") {
  // This program has no perfkit::dwarf.
  const std::vector<std::string> notes = StackNotes();
  REQUIRE(notes.size() == 3);
  CHECK(notes[0].starts_with("no stacks by \"live\": the component perfkit::dwarf is not linked"));
  CHECK(notes[1].starts_with("no stacks by \"dumps\": the component perfkit::dwarf is not linked"));
  CHECK(notes[2] == "stacks: frame pointers");
}

TEST_CASE("without any stacks a session samples, and says that the kernel refused them", "[session][fallbacks]") {
  testing::FakeKernel fake;
  fake.below().perf_event_open = OpenWithoutChains;
  const std::vector<std::string> notes = StackNotes();
  REQUIRE(notes.size() == 4);
  CHECK(notes[2].starts_with("no stacks by \"frame pointers\": "));
  CHECK(notes[2].find("Remedy") != std::string::npos);
  CHECK(notes[3] == "stacks: none");
  // What was asked for by name is not replaced.
  const absl::Status status = Session::Start({.stacks = SessionStacks::kFramePointers}).status();
  CHECK(absl::IsPermissionDenied(status));
}

TEST_CASE("stacks of a component that is not linked are refused", "[session][fallbacks]") {
  for (const SessionStacks stacks : {SessionStacks::kLive, SessionStacks::kDumps}) {
    const absl::Status status = Session::Start({.stacks = stacks}).status();
    CHECK(absl::IsUnimplemented(status));
    CHECK(status.message().find("Remedy: link it") != std::string_view::npos);
    const bool live = stacks == SessionStacks::kLive;
    CHECK(status.message().find(live ? "stacks \"live\": the" : "stacks \"dumps\": the") == 0);
  }
}

TEST_CASE("intervals from 10 us to 10 s are possible", "[session][fallbacks]") {
  for (const std::chrono::nanoseconds interval : {10'000ns, std::chrono::nanoseconds(10s)}) {
    CHECK(Session::Start({.interval = interval, .stacks = SessionStacks::kNone}).status() == absl::OkStatus());
  }
  for (const std::chrono::nanoseconds interval :
       {9'999ns, std::chrono::nanoseconds(10s) + 1ns, 0ns, -1ns, std::chrono::nanoseconds::min()}) {
    INFO(interval.count());
    const absl::Status status = Session::Start({.interval = interval}).status();
    CHECK(absl::IsInvalidArgument(status));
    CHECK(status.message() ==
          "cannot sample every " + std::to_string(interval.count()) +
              " ns. Remedy: choose SessionOptions::interval from 10 us (the kernel's own floor) to 10 s.");
  }
}

}  // namespace
}  // namespace perfkit::session
