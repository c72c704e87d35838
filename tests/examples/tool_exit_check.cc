// Runs all tools where they cannot write, with wrong arguments, and as a supervisor may start them. Their exit codes
// and their words must tell.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/support/as_user.h"
#include "tests/support/run.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"

namespace {

using perfkit::testing::Run;
using perfkit::testing::RunCommand;

// Programs that this build has, with arguments for a short run.
const std::vector<std::string> kPrinting = {
    STAT " -e page-faults true",
    STAT " -x, -I 1000 -e page-faults true",
    STAT " -j -e page-faults true",
    STAT " --help",
    LIST " sw",
    LIST " hw sw cache thread",  // more than a buffer of stdio
    LIST " --help",
    DOCTOR,
    DOCTOR " --help",
    DRAIN " 0.1",
#ifdef RECORD
    RECORD " -e page-faults:u true",
    RECORD " --help",
#endif
#ifdef STACKS
    STACKS " --help",
#endif
#ifdef PROFILE
    PROFILE " --help",
#endif
};

// The programs without options, with the largest number of arguments.
const std::vector<std::string> kPlain = {
    DOCTOR,
    DRAIN " 1",
#ifdef STACKS
    STACKS " 1",
#endif
#ifdef PROFILE
    PROFILE " 1 /no/such/folder",
#endif
};
const std::vector<std::string> kTakeSeconds = {
    DRAIN,
#ifdef STACKS
    STACKS,
#endif
#ifdef PROFILE
    PROFILE,
#endif
};
const std::vector<std::string> kRunCommands = {
    STAT " -e page-faults",
    STAT " -r 2 -e page-faults",
    STAT " -d 600 -e page-faults",
#ifdef RECORD
    RECORD " -e page-faults:u",
#endif
};

Run Command(const std::string& command) { return RunCommand("timeout 60 " + command); }

size_t Count(const Run& run, const std::string& text) {
  size_t count = 0;
  for (size_t at = 0; (at = run.output.find(text, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST_CASE("a standard output that cannot be written is a failure, with its reason", "[tool_exit]") {
  for (const std::string& tool : kPrinting) {
    const Run full = Command(tool + " >/dev/full"), closed = Command(tool + " >&-");
    INFO(tool << "\n" << full.output << closed.output);
    CHECK(full.exit_code > 0);
    CHECK(full.exit_code < 100);  // neither timeout's, nor a signal
    CHECK(Count(full, "cannot write the standard output: No space left on device\n") == 1);
    CHECK(closed.exit_code == full.exit_code);
    CHECK(Count(closed, "cannot write the standard output: Bad file descriptor\n") == 1);
    CHECK(Command(tool + " >/dev/null").exit_code == 0);
  }
}

TEST_CASE("a report that is lost wins over the command's exit code", "[tool_exit]") {
  for (const std::string& tool : kRunCommands) {
    INFO(tool);
    const int lost = Command(tool + " true >/dev/full").exit_code;
    CHECK(lost != 0);
    CHECK(Command(tool + " sh -c 'exit 7' >/dev/full").exit_code == lost);
  }
}

TEST_CASE("a file that cannot be written is a failure, and a closed stdout is none if nothing is printed there",
          "[tool_exit]") {
  const Run full = Command(STAT " -o /dev/full -e page-faults true");
  INFO(full.output);
  CHECK(full.exit_code == 2);
  CHECK(Count(full, "stat: cannot write /dev/full: No space left on device\n") == 1);
  const perfkit::testing::TempFolder folder;
  const std::string file = folder.path() + "/report";
  const Run closed = Command(STAT " -o " + file + " -e page-faults true <&- >&-");
  INFO(closed.output);
  CHECK(closed.exit_code == 0);
  CHECK(Count(RunCommand("cat " + file), "page-faults") > 0);
}

TEST_CASE("a command finds the streams closed that were closed for the tool", "[tool_exit]") {
  for (const std::string& tool : kRunCommands) {
    const Run run = Command(tool + " test -e /proc/self/fd/0 <&-");
    INFO(tool << "\n" << run.output);
    CHECK(run.exit_code == 1);
  }
}

// Not within a shell, which would not pass it on, and not as the parent of timeout, which would undo it.
Run CommandWithoutSigchld(const std::string& command) { return Command("env --ignore-signal=CHLD " + command); }

TEST_CASE("an exit code survives a parent that ignores SIGCHLD, and the command ignores it as before", "[tool_exit]") {
  const std::string ask = "grep SigIgn /proc/self/status";
  const Run ignored = CommandWithoutSigchld(ask), plain = Command(ask);
  REQUIRE(ignored.exit_code == 0);
  REQUIRE(ignored.output != plain.output);
  for (const std::string& tool : kRunCommands) {
    INFO(tool);
    CHECK(CommandWithoutSigchld(tool + " true").exit_code == 0);
    CHECK(CommandWithoutSigchld(tool + " sh -c 'exit 7'").exit_code == 7);
    CHECK(CommandWithoutSigchld(tool + " sh -c 'kill -TERM $$'").exit_code == 128 + 15);
    CHECK(Count(CommandWithoutSigchld(tool + " " + ask), ignored.output) > 0);
    CHECK(Count(Command(tool + " " + ask), ignored.output) == 0);
  }
}

TEST_CASE("seconds are checked", "[tool_exit]") {
  for (const std::string& tool : kTakeSeconds) {
    for (const std::string seconds : {"0", "abc", "-1", "nan", "1s", "''", "--help-me"}) {
      const Run run = Command(tool + " " + seconds);
      INFO(tool << " " << seconds << ": " << run.output);
      CHECK(run.exit_code == 2);
      CHECK(Count(run, "SECONDS must be") == 1);
    }
  }
}

TEST_CASE("the programs without options have a help, and take no more arguments than it names", "[tool_exit]") {
  for (const std::string& tool : kPlain) {
    const Run run = Command(tool + " more");
    INFO(tool << ": " << run.output);
    CHECK(run.exit_code == 2);
    CHECK(Count(run, "unexpected argument 'more'") == 1);
    for (const std::string help : {"-h", "--help"}) {
      const Run told = Command(tool + " " + help + " 2>/dev/null");
      CHECK(told.exit_code == 0);
      CHECK(told.output.starts_with("usage: "));
    }
  }
}

TEST_CASE("stat blames this user's rights, not an event that the machine lacks", "[tool_exit]") {
  struct stat first {};
  if (stat("/proc/1", &first) != 0 || first.st_uid != 0) SKIP_TEST("process 1 is not root's");
  const std::string uid = std::to_string(perfkit::testing::OrdinaryUid());
  const std::string as_user = "setpriv --reuid=" + uid + " --regid=" + uid + " --clear-groups ";
  for (const std::string events : {"cycles,page-faults", "page-faults,cycles"}) {
    const Run run = RunCommand((geteuid() == 0 ? as_user : "") + "timeout 60 " STAT " -d 0.1 -p 1 -e " + events);
    if (run.exit_code == 126 || run.exit_code == 127) SKIP_TEST("an ordinary user cannot run stat here");
    if (Count(run, "every perf_event_open") + Count(run, "to privileged processes only") != 0)
      SKIP_TEST("perf events are closed to ordinary users");
    INFO(events << ": " << run.output);
    CHECK(run.exit_code == 2);
    CHECK(Count(run, "belongs to another user") == 1);
    CHECK(Count(run, "no PMU") == 0);
  }
}

TEST_CASE("0 is no process and no thread", "[tool_exit]") {
  for (const std::string& tool : kRunCommands) {
    for (const std::string what : {"process", "thread"}) {
      const Run run = Command(tool + " -" + what[0] + " 0 true");
      INFO(tool << ": " << run.output);
      CHECK(run.exit_code == 2);
      CHECK(Count(run, "0 is no " + what + "\n") == 1);
    }
  }
}

}  // namespace
