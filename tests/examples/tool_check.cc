// What stat and record share, as functions: which targets the words of a command line make, and when tasks have ended.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tool/targets.h"
#include "tool/task_watch.h"

namespace {

using perfkit::Target;
using tool::MakeTargets;
using tool::TaskWatch;

// A thread of ours that lives until it is told to end.
class Bystander {
 public:
  Bystander() : thread_([this] { Live(); }) {
    while (tid_ == 0) std::this_thread::yield();
  }
  ~Bystander() { End(); }
  void End() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  pid_t tid() const { return tid_; }

 private:
  void Live() {
    tid_ = static_cast<pid_t>(syscall(SYS_gettid));
    while (!over_) std::this_thread::yield();
  }

  std::atomic<pid_t> tid_{0};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

// "p12 t34 c0 system", in order; "refused" if they contradict each other.
std::string Describe(const tool::TargetNames& names) {
  const auto targets = MakeTargets(names, true);
  if (!targets.ok()) return "refused";
  std::string text;
  for (const Target& target : *targets) {
    const char* const kinds[] = {"?", "t", "p", "?", "c", "system"};
    text += kinds[static_cast<int>(target.kind)];
    if (target.kind != Target::Kind::kSystem) text += std::to_string(target.id);
    text += ' ';
  }
  return text;
}

TEST_CASE("targets that are named twice are one", "[tool]") {
  const Bystander other;
  const int pid = getpid(), tid = other.tid();
  const std::string self = "p" + std::to_string(pid) + " ";
  CHECK(Describe({.processes = {pid, pid}}) == self);
  CHECK(Describe({.processes = {pid}, .threads = {pid}}) == self);
  CHECK(Describe({.processes = {pid}, .threads = {tid, tid}}) == self);
  CHECK(Describe({.processes = {tid, pid}}) == self);  // by any of its threads
  CHECK(Describe({.threads = {tid, tid}}) == "t" + std::to_string(tid) + " ");
  CHECK(Describe({.processes = {pid}, .threads = {getppid()}}) == self + "t" + std::to_string(getppid()) + " ");
  CHECK(Describe({.cpus = {1, 0, 1}}) == "c0 c1 ");
  CHECK(Describe({}) == "");
}

TEST_CASE("CPUs narrow the system, and exclude tasks, which run on them", "[tool]") {
  CHECK(Describe({.whole_system = true}) == "system ");
  CHECK(Describe({.whole_system = true, .cpus = {2}}) == "c2 ");
  CHECK(Describe({.whole_system = true, .processes = {getpid()}}) == "refused");
  CHECK(Describe({.cpus = {0}, .threads = {getpid()}}) == "refused");
}

TEST_CASE("0 names no task: for the kernel it would be the caller", "[tool]") {
  CHECK(Describe({.processes = {getpid(), 0}}) == "refused");
  CHECK(Describe({.threads = {0}}) == "refused");
  CHECK(Describe({.cpus = {0}}) == "c0 ");
}

TEST_CASE("inheritance is left out on request", "[tool]") {
  CHECK(MakeTargets({.processes = {getpid()}}, true)->front().inherit);
  CHECK_FALSE(MakeTargets({.processes = {getpid()}}, false)->front().inherit);
}

TEST_CASE("lists of numbers, and of CPUs with ranges", "[tool]") {
  std::vector<int> ids;
  CHECK(tool::ParseIds("7,12", &ids));
  CHECK(tool::ParseCpus("0-2,5", &ids));
  CHECK(ids == std::vector<int>{7, 12, 0, 1, 2, 5});
  for (const char* text : {"", ",", "1,", ",1", "x", "1 ", "-1", "2-1", "1-", "0-5000", "99999999999"}) {
    INFO(text);
    CHECK_FALSE(tool::ParseCpus(text, &ids));
  }
  CHECK_FALSE(tool::ParseIds("0-2", &ids));
}

TEST_CASE("durations are finite and can be waited for", "[tool]") {
  std::optional<double> seconds;
  CHECK(tool::ParseSeconds("0.25", &seconds));
  CHECK(seconds == 0.25);
  for (const char* text : {"", "abc", "1s", "0", "-1", "nan", "inf", "1e9"}) {
    INFO(text);
    CHECK_FALSE(tool::ParseSeconds(text, &seconds));
  }
}

TEST_CASE("a process has ended when it is a zombie, and when it is gone", "[tool]") {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  const TaskWatch watch({Target::Process(child)}), both({Target::Process(child), Target::Process(getpid())});
  CHECK_FALSE(watch.AllEnded());
  CHECK_FALSE(tool::HasEnded(child));
  kill(child, SIGKILL);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  CHECK(watch.AllEnded());
  CHECK(tool::HasEnded(child));
  waitpid(child, nullptr, 0);
  CHECK(watch.AllEnded());
  CHECK_FALSE(both.AllEnded());
}

TEST_CASE("a thread ends alone", "[tool]") {
  Bystander other;
  const TaskWatch thread({Target::Thread(other.tid())}), process({Target::Process(getpid())});
  CHECK_FALSE(thread.AllEnded());
  other.End();
  while (!thread.AllEnded()) std::this_thread::yield();  // joined a moment before the kernel has released it
  CHECK_FALSE(process.AllEnded());
}

TEST_CASE("CPUs never end", "[tool]") {
  CHECK_FALSE(TaskWatch({Target::Cpu(0)}).AllEnded());
  CHECK_FALSE(TaskWatch({}).AllEnded());
}

}  // namespace
