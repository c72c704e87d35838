// Who wakes whom and who runs next: the kernel's records by hand, and threads that wake each other.
#include "src/session/sched_events.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>

#include "src/proc/blocked_call.h"
#include "tests/session/support.h"
#include "tests/support/skip.h"
#include "tests/support/with_tracefs.h"
#include "tests/support/work.h"

namespace perfkit::session {
namespace {

// As Linux 6.18 prints it.
constexpr std::string_view kFormat = R"(name: sched_waking
ID: 345
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:char comm[16];	offset:8;	size:16;	signed:0;
	field:pid_t pid;	offset:24;	size:4;	signed:1;
	field:int prio;	offset:28;	size:4;	signed:1;
	field:int target_cpu;	offset:32;	size:4;	signed:1;

print fmt: "comm=%s pid=%d prio=%d target_cpu=%03d", REC->comm, REC->pid, REC->prio, REC->target_cpu
)";

TEST_CASE("a waking says who is woken, and whether an interrupt does it", "[waking]") {
  absl::StatusOr<TracepointFormat> format = TracepointFormat::Parse(kFormat);
  REQUIRE(format.status() == absl::OkStatus());
  const absl::StatusOr<WakingFormat> waking = WakingFormat::Of(*std::move(format));
  REQUIRE(waking.status() == absl::OkStatus());
  std::array<std::byte, 36> raw{};
  const uint32_t woken = 4321;
  memcpy(raw.data() + 24, &woken, sizeof(woken));
  const auto by_flags = [&](uint8_t flags) {
    raw[2] = std::byte{flags};
    const std::optional<Waking> parsed = waking->Parse(raw);
    REQUIRE(parsed);
    CHECK(parsed->tid == woken);
    return parsed->by_interrupt;
  };
  CHECK_FALSE(by_flags(0x00));
  CHECK_FALSE(by_flags(0x01));  // interrupts are off
  CHECK_FALSE(by_flags(0x24));  // it has to be rescheduled
  CHECK(by_flags(0x08));
  CHECK(by_flags(0x11));
  CHECK(by_flags(0x40));
  for (size_t bytes = 0; bytes < 28; ++bytes) CHECK_FALSE(waking->Parse(Bytes(raw).first(bytes)));
}

TEST_CASE("a tracepoint that does not say it is refused", "[waking]") {
  absl::StatusOr<TracepointFormat> format = TracepointFormat::Parse(
      "name: sched_waking\nID: 345\nformat:\n\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n");
  REQUIRE(format.status() == absl::OkStatus());
  CHECK(SwitchFormat::Of(*format).status().code() == absl::StatusCode::kUnimplemented);
  CHECK(WakingFormat::Of(*std::move(format)).status().code() == absl::StatusCode::kUnimplemented);
}

// As Linux 6.18 prints it, without the fields that all tracepoints have.
constexpr std::string_view kSwitchText = R"(name: sched_switch
ID: 340
format:
	field:char prev_comm[16];	offset:8;	size:16;	signed:0;
	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;
	field:int prev_prio;	offset:28;	size:4;	signed:1;
	field:long prev_state;	offset:32;	size:8;	signed:1;
	field:char next_comm[16];	offset:40;	size:16;	signed:0;
	field:pid_t next_pid;	offset:56;	size:4;	signed:1;
	field:int next_prio;	offset:60;	size:4;	signed:1;
)";

TEST_CASE("a switch says which thread leaves the CPU, and which one runs next", "[sched_switch]") {
  absl::StatusOr<TracepointFormat> format = TracepointFormat::Parse(kSwitchText);
  REQUIRE(format.status() == absl::OkStatus());
  const absl::StatusOr<SwitchFormat> switches = SwitchFormat::Of(*std::move(format));
  REQUIRE(switches.status() == absl::OkStatus());
  std::array<std::byte, 64> raw{};
  const uint32_t from = 4321, to = 17;
  memcpy(raw.data() + 24, &from, sizeof(from));
  memcpy(raw.data() + 40, "cc1plus", 8);
  memcpy(raw.data() + 56, &to, sizeof(to));
  const std::optional<Switch> parsed = switches->Parse(raw);
  REQUIRE(parsed);
  CHECK((parsed->from_tid == from && parsed->to_tid == to && parsed->to_name == "cc1plus"));
  const auto is_preempted = [&](uint16_t state) {
    memcpy(raw.data() + 32, &state, sizeof(state));
    return switches->Parse(raw)->is_preempted;
  };
  CHECK(is_preempted(0));
  CHECK(is_preempted(0x100));
  CHECK_FALSE(is_preempted(1));
  CHECK_FALSE(is_preempted(0x80));
  for (size_t bytes = 0; bytes < 60; ++bytes) CHECK_FALSE(switches->Parse(Bytes(raw).first(bytes)));
}

// A thread that reads one byte after the other from a pipe, and sleeps between them.
class Reader {
 public:
  Reader() { REQUIRE(pipe(ends_) == 0); }
  ~Reader() {
    close(ends_[0]);
    close(ends_[1]);
  }
  void Read(int bytes) {
    char byte = 0;
    tid_ = static_cast<uint32_t>(gettid());
    for (int i = 0; i < bytes && read(ends_[0], &byte, 1) == 1; ++i) ++has_read_;
  }
  // Waits until it sleeps and has read `has_read` bytes, then wakes it.
  bool Wake(int has_read) {
    while (has_read_ < has_read || tid_ == 0 || proc::ReadState(static_cast<pid_t>(tid_)) != 'S') {
      std::this_thread::yield();
    }
    return write(ends_[1], "", 1) == 1;
  }
  uint32_t tid() const { return tid_; }

 private:
  int ends_[2];
  std::atomic<uint32_t> tid_{0};
  std::atomic<int> has_read_{0};
};

// Returns "" if all is as it must be.
std::string WakeReader(SessionStacks stacks) {
  constexpr int kBytes = 50;
  Reader reader;
  absl::StatusOr<Session> session = Session::Start({.clock = SessionClock::kWall, .stacks = stacks, .wakers = true});
  if (!session.ok()) return std::string(session.status().message());
  std::thread thread([&] { reader.Read(kBytes); });
  for (int i = 0; i < kBytes; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // long enough to be looked at
    if (!reader.Wake(i)) return "write";
  }
  thread.join();
  const absl::StatusOr<Profile> profile = session->Stop();
  if (!profile.ok() || !profile->Check().ok()) return "no profile";
  const size_t event = profile->EventIndex(kWakingEvent);
  if (event == profile->events.size()) return "tracepoints are not permitted";
  const EventAccounting& accounting = profile->events[event].accounting;
  if (profile->Total(event).samples != accounting.delivered) return "samples that were delivered are missing";
  const std::string self = "(" + std::to_string(gettid()) + ")";
  size_t by_this_thread = 0;
  for (const ProfileSample& sample : profile->samples) {
    if (sample.wait == ProfileSample::kNoWait || profile->threads[sample.thread].tid != reader.tid()) continue;
    const ProfileWait& wait = profile->waits[sample.wait];
    const std::string& waker = profile->strings[wait.waker];
    by_this_thread += waker.ends_with(self);
    const bool in_read = wait.blocked_in_syscall && wait.syscall == SYS_read && wait.waker != 0;
    if (in_read && !waker.ends_with(self) && waker != "an interrupt") return "woken by " + waker;
  }
  return by_this_thread + accounting.lost > 0 ? "" : "no waker is known";
}

TEST_CASE("a thread that waits for another one is woken by that one", "[waking][law]") {
  if (!testing::kThreadsAfterFork) SKIP_TEST("a forked child can't start threads under ThreadSanitizer");
  const auto stacks = GENERATE(SessionStacks::kNone, SessionStacks::kFramePointers, SessionStacks::kBest);
  const int result = testing::WithTracefs([&] {
    const std::string wrong = WakeReader(stacks);
    if (!wrong.empty()) std::fprintf(stderr, "%s\n", wrong.c_str());
    return wrong.empty();
  });
  if (result == 2) SKIP_TEST("tracefs cannot be mounted here");
  CHECK(result == 0);
}

TEST_CASE("without the right to it, a note says why nothing is known of wakers", "[waking]") {
  absl::StatusOr<Session> session = Session::Start({.clock = SessionClock::kWall, .wakers = true});
  REQUIRE(session.status() == absl::OkStatus());
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  const bool has_event = profile->EventIndex(kWakingEvent) < profile->events.size();
  const auto says_why = [](const std::string& note) { return note.starts_with("who woke threads is not known: "); };
  CHECK(has_event != std::ranges::any_of(profile->accounting.notes, says_why));
}

TEST_CASE("wakers without the times that threads wait are refused", "[waking]") {
  const absl::Status status = Session::Start({.wakers = true}).status();
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(std::string(status.message()).find("kWall") != std::string::npos);
}

}  // namespace
}  // namespace perfkit::session
