// libperfkit_profile_preload.so: profiles an unmodified program from its start to its exit.
//
//   PERFKIT_PROFILE=out.html LD_PRELOAD=libperfkit_profile_preload.so program
//
// The constructor starts a session. A thread writes the profile at intervals, so that a crash leaves the last one. The
// destructor, which exit() runs, writes the final one. If the first thread leaves by pthread_exit, the C library calls
// exit() when the last one ends, which perfkit's own don't: then the writing thread calls it. Programs that the program
// starts are profiled only if the name has a "%p", which becomes the process's number.
#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_format.h"
#include "perfkit/profile_writer.h"
#include "perfkit/session.h"
#include "src/base/variables.h"
#include "src/preload/settings.h"
#include "src/proc/blocked_call.h"
#include "src/proc/threads.h"
#include "src/profile/formats.h"
#include "src/sys/descriptor_check.h"
#include "src/sys/fd.h"
#include "src/sys/kernel.h"
#include "src/sys/worker_thread.h"

namespace perfkit::preload {
namespace {

void Complain(const absl::Status& status) {
  std::fprintf(stderr, "perfkit: no profile: %s\n", std::string(status.message()).c_str());
}

// Profiles this process.
class WholeProgram {
 public:
  // Returns nullptr, after a line on stderr, if there can be no profile.
  static std::unique_ptr<WholeProgram> Start(const Settings& settings) {
    absl::StatusOr<sys::OwnedFd> first = sys::DescriptorCheck::OpenFirst();
    if (!first.ok()) return Complain(first.status()), nullptr;
    absl::StatusOr<Session> session = Session::Start(settings.session);
    if (!session.ok()) return Complain(session.status()), nullptr;
    std::unique_ptr<WholeProgram> mine(new WholeProgram(settings, *std::move(session), *std::move(first)));
    const absl::Status status = mine->thread_.Start("perfkit-profile", [raw = mine.get()] { raw->WriteNowAndThen(); });
    if (!status.ok()) Complain(status);  // The profile is still written at exit.
    return mine;
  }

  // A forked child has a copy of the parent's session, which does nothing there.
  bool is_mine() const { return sys::kernel().getpid() == pid_; }

  // Writes the final profile. Returns false if this must not be destroyed, because its descriptors are the program's,
  // or its own thread calls this.
  bool Finish() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      quit_ = true;
    }
    quits_.notify_all();
    if (!deserted_) thread_.Join();
    const absl::Status status = Write([this] { return session_.Stop(); });
    if (status.ok()) {
      std::fprintf(stderr, "perfkit: profile written to %s\n", settings_.path.c_str());
    } else {
      Complain(status);
    }
    return !deserted_ && descriptors_.passes();
  }

 private:
  WholeProgram(const Settings& settings, Session session, sys::OwnedFd first)
      : settings_(settings),
        session_(std::move(session)),
        descriptors_(std::move(first)),
        pid_(sys::kernel().getpid()) {}

  // Returns true if all threads of the program have ended, without exit().
  static bool IsDeserted() {
    const int pid = sys::kernel().getpid();
    if (proc::ReadState(pid) != 'Z') return false;  // the first thread, which stays in the list
    const absl::StatusOr<std::vector<pid_t>> threads = proc::ListThreads(0);
    return threads.ok() && threads->size() <= 1 + static_cast<size_t>(sys::WorkerThread::running());
  }

  enum class Event : uint8_t { kTime, kQuit, kDeserted };

  // Waits for PERFKIT_PROFILE_EVERY, for Finish, or until the program is deserted.
  Event Wait() {
    constexpr std::chrono::milliseconds kLook{200};
    std::unique_lock<std::mutex> lock(mutex_);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(settings_.every_ms);
    while (!quit_) {
      if (IsDeserted()) return Event::kDeserted;
      const auto now = std::chrono::steady_clock::now();
      if (now >= end) return Event::kTime;
      quits_.wait_until(lock, std::min(end, now + kLook));
    }
    return Event::kQuit;
  }

  // Complains about the first failure: the program may end without Finish.
  void WriteNowAndThen() {
    bool complained = false;
    Event event = Wait();
    for (; event == Event::kTime; event = Wait()) {
      const absl::Status status = Write([this] { return session_.Snapshot(); });
      if (!status.ok() && !complained) Complain(status);
      complained = complained || !status.ok();
    }
    if (event == Event::kQuit) return;
    deserted_ = true;
    std::exit(0);  // as the C library does; calls Finish
  }

  // Writes the profile that `take` returns.
  absl::Status Write(absl::FunctionRef<absl::StatusOr<Profile>()> take) {
    if (!descriptors_.passes()) {
      return absl::Status(absl::StatusCode::kFailedPrecondition,
                          absl::StrFormat("the program has closed perfkit's descriptors (closefrom); %s has what was "
                                          "written last. Remedy: perfkit::Session in the program, started after that",
                                          settings_.path));
    }
    const absl::StatusOr<Profile> profile = take();
    return profile.ok() ? WriteProfile(*profile, settings_.path) : profile.status();
  }

  const Settings settings_;
  Session session_;
  const sys::DescriptorCheck descriptors_;
  const int pid_;
  std::mutex mutex_;  // Guards quit_. No descriptor wakes the thread, because the program may close any.
  std::condition_variable quits_;
  bool quit_ = false;
  bool deserted_ = false;  // of thread_
  sys::WorkerThread thread_;
};

// Makes this process the owner of the profile: programs that it starts see another process's number in the variable,
// and a program that replaces it by exec sees its own. Writes into the environment directly: a shell may replace setenv
// by its own.
void ClaimProfile(const Settings& settings, int pid) {
  // Never destroyed: environ points to it until the process ends.
  std::string& claimed = *new std::string(absl::StrFormat("%s=%s", kPathVariable, ClaimedBy(settings, pid)));
  const std::string_view begin(claimed.data(), std::string_view(kPathVariable).size() + 1);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::string_view(*entry).starts_with(begin)) *entry = claimed.data();
  }
}

WholeProgram* g_program = nullptr;

[[gnu::constructor]] void Begin() {
  const int pid = sys::kernel().getpid();
  absl::StatusOr<Settings> settings = ReadSettings(std::getenv, pid);
  if (!settings.ok()) return Complain(settings.status());
  if (settings->path.empty()) return;
  base::MakeAbsolute(settings->path);
  if (!settings->each_process) ClaimProfile(*settings, pid);
  // Before the program runs for hours; after ClaimProfile, so that programs that it starts don't say it again.
  if (const auto format = FormatOf(settings->path); !format.ok()) return Complain(format.status());
  // Kept by a plain pointer: the destructor of a global might run before End().
  g_program = WholeProgram::Start(*settings).release();
}

[[gnu::destructor]] void End() {
  if (g_program == nullptr || !g_program->is_mine()) return;
  if (g_program->Finish()) delete g_program;
}

}  // namespace
}  // namespace perfkit::preload
