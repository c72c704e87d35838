// Runs stat as anyone would, and holds its numbers against perf's and its words against what was asked.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/as_user.h"
#include "tests/support/run.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"

namespace {

using perfkit::testing::Run;
using perfkit::testing::RunCommand;

Run Stat(const std::string& arguments) { return RunCommand("timeout 20 " STAT " " + arguments); }

// The number in front of `event` in stat's table, separators taken out; -1 when there is none.
double NumberOf(const Run& run, const std::string& event) {
  std::istringstream lines(run.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" " + event) == std::string::npos) continue;
    std::erase(line, ',');
    char* end;
    const double number = std::strtod(line.c_str(), &end);
    return end == line.c_str() ? -1 : number;
  }
  return -1;
}

bool Says(const Run& run, const std::string& text) { return run.output.find(text) != std::string::npos; }

TEST_CASE("what the command returns, stat returns", "[stat]") {
  CHECK(Stat("-e page-faults true").exit_code == 0);
  CHECK(Stat("-e page-faults false").exit_code == 1);
  CHECK(Stat("-e page-faults sh -c 'exit 7'").exit_code == 7);
  CHECK(Stat("-e page-faults sh -c 'kill -TERM $$'").exit_code == 128 + 15);
}

TEST_CASE("a program that is not there is named", "[stat]") {
  const Run run = Stat("-e page-faults /no/such/program");
  CHECK(run.exit_code == 127);
  CHECK(Says(run, "/no/such/program"));
}

TEST_CASE("a wrong name is answered with the nearest real one", "[stat]") {
  const Run run = Stat("-e page-fault5 true");
  CHECK(run.exit_code == 2);
  CHECK(Says(run, "'page-fault5'"));
  CHECK(Says(run, "'page-faults'"));
}

TEST_CASE("nothing to count, and numbers that are none, are refused", "[stat]") {
  CHECK(Stat("").exit_code == 2);
  for (const char* arguments : {"-p 12,x", "-t ,", "--cpu 3-1", "-d abc", "-d 0", "-d -1", "-d nan", "-I 0", "-I abc",
                                "-r 0", "-r x", "-x ''", "-e ''"}) {
    const Run run = Stat(std::string(arguments) + " -e page-faults true");
    INFO(arguments << ": " << run.output);
    CHECK(run.exit_code == 2);
    CHECK(Says(run, " wants "));
  }
  CHECK(Stat("--no-such-option").exit_code == 2);
  CHECK(Stat("-t 4194303 -e page-faults -d 1").exit_code == 2);  // no such thread
  CHECK(Stat("--help").exit_code == 0);
}

TEST_CASE("stat and perf stat count the same faults of the same program", "[stat]") {
  const std::string program = "ls -R /usr/include/c++";
  // In turns, and the least of each: pages that are not in memory yet are mapped one by one.
  double theirs = 1e9, ours = 1e9;
  for (int i = 0; i < 3; ++i) {
    const Run perf = RunCommand("perf stat -x, -e page-faults:u " + program + " 2>&1 >/dev/null");
    theirs = std::min(theirs, std::atof(perf.output.c_str()));
    if (perf.exit_code != 0 || theirs <= 0) SKIP_TEST("perf is not here: " + perf.output.substr(0, 80));
    ours = std::min(ours, NumberOf(Stat("-e page-faults:u " + program + " 2>&1 | tail -4"), "page-faults:u"));
  }
  CHECK(ours == Approx(theirs).epsilon(0.1));  // the loader places things anew each time
}

TEST_CASE("the clock of a busy command is its time", "[stat]") {
  const Run run = Stat("-e task-clock,page-faults sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'");
  const double clock_ns = NumberOf(run, "task-clock");
  CHECK(clock_ns > 1e7);
  CHECK(clock_ns < 1e10);
  CHECK(Says(run, "CPUs used"));
}

TEST_CASE("another process and its threads can be counted for a while", "[stat]") {
  const Run run = RunCommand(
      "sleep 60 >/dev/null 2>&1 & "
      "until grep -q '(sleep) S' /proc/$!/stat; do :; done; "  // its start is over, and so are its faults
      "timeout 20 " STAT " -e page-faults,task-clock -d 0.1 -p $!; kill $!");
  CHECK(NumberOf(run, "page-faults") == 0);
  CHECK(Says(run, "Total time"));
}

TEST_CASE("words that contradict each other are refused", "[stat]") {
  CHECK(Says(Stat("-a -p 1 -d 1"), "say one of them"));
  CHECK(Says(Stat("--cpu 0 -t 1 -d 1"), "say one of them"));
  CHECK(Says(Stat("-r 2 -I 10 true"), "exclude each other"));
  CHECK(Says(Stat("-r 2 -p 1"), "requires a command"));
  for (const char* both : {"-j -x , true", "-x , -j true"}) CHECK(Says(Stat(both), "-x and -j exclude each other"));
}

TEST_CASE("a second list of events adds to the first", "[stat]") {
  const Run run = Stat("-e page-faults -e '{task-clock,minor-faults}' true");
  CHECK(NumberOf(run, "page-faults") > 0);
  CHECK(NumberOf(run, "task-clock") > 0);
  CHECK(NumberOf(run, "minor-faults") > 0);
}

TEST_CASE("a command that outlives its time is ended", "[stat]") {
  const Run run = Stat("-e page-faults -d 0.1 sleep 600");
  CHECK(run.exit_code == 128 + SIGTERM);
  CHECK(Says(run, "Total time"));
}

TEST_CASE("CPUs are named as ranges too", "[stat]") {
  const Run run = Stat("--cpu 0-0,0 -e cpu-clock -d 0.1");
  if (Says(run, "erm")) SKIP_TEST("this user may not: " + run.output.substr(0, 100));
  CHECK(run.exit_code == 0);
  CHECK(NumberOf(run, "cpu-clock") > 0);
}

// A process that touches kPages fresh pages when it is told to.
class Toucher {
 public:
  static constexpr size_t kPages = 1024;

  Toucher() {
    REQUIRE(pipe(begin_) == 0);
    REQUIRE(pipe(done_) == 0);
    pid_ = fork();
    if (pid_ == 0) Live();
  }
  ~Toucher() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    for (const int fd : {begin_[0], begin_[1], done_[0], done_[1]}) close(fd);
  }
  void Touch() {
    char byte = 0;
    REQUIRE(write(begin_[1], &byte, 1) == 1);
    REQUIRE(read(done_[0], &byte, 1) == 1);
  }
  void Kill() { kill(pid_, SIGKILL); }
  std::string pid() const { return std::to_string(pid_); }

 private:
  [[noreturn]] void Live() {
    char byte;
    while (read(begin_[0], &byte, 1) == 1) {
      const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), bytes = kPages * page;
      void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) _exit(1);
      madvise(memory, bytes, MADV_NOHUGEPAGE);
      for (size_t i = 0; i < kPages; ++i) static_cast<volatile char*>(memory)[i * page] = 1;
      if (write(done_[1], &byte, 1) != 1) _exit(1);
    }
    _exit(0);
  }

  int begin_[2] = {-1, -1}, done_[2] = {-1, -1};
  pid_t pid_ = -1;
};

// Runs stat by intervals, has the process touch its pages once counting has begun, and kills it. The sum of all
// intervals; -1 if stat did not end with its target.
double FaultsOf(const std::string& targets, Toucher& toucher) {
  FILE* const pipe = popen(("timeout 60 " STAT " -x, -I 10 -e page-faults:u " + targets + " 2>&1").c_str(), "re");
  REQUIRE(pipe != nullptr);
  double sum = 0;
  char line[256];
  for (int lines = 0; fgets(line, sizeof(line), pipe) != nullptr; ++lines) {
    if (lines == 0) {
      toucher.Touch();
      toucher.Kill();
    }
    double time = 0, value = 0;
    INFO(line);
    REQUIRE(sscanf(line, "%lf,%lf,,page-faults:u,", &time, &value) == 2);
    sum += value;
  }
  return pclose(pipe) == 0 ? sum : -1;
}

TEST_CASE("a target that is named twice is counted once, and stat ends with it", "[stat]") {
  for (const bool twice : {false, true}) {
    Toucher toucher;
    const std::string targets = "-p " + toucher.pid() + (twice ? "," + toucher.pid() + " -t " + toucher.pid() : "");
    const double faults = FaultsOf(targets, toucher);
    INFO(targets);
    CHECK(faults >= Toucher::kPages);
    CHECK(faults < 2 * Toucher::kPages);
  }
}

TEST_CASE("with a target of its own a command only says how long", "[stat]") {
  const Run run = RunCommand(
      "sleep 60 >/dev/null 2>&1 & "
      "until grep -q '(sleep) S' /proc/$!/stat; do :; done; "
      "timeout 20 " STAT
      " -e page-faults:u -t $! sh -c 'ls -R /usr/include/linux >/dev/null; exit 3'; code=$?; kill $!; exit $code");
  CHECK(run.exit_code == 3);
  CHECK(NumberOf(run, "page-faults:u") == 0);
}

TEST_CASE("a command is repeated, and the mean has its spread", "[stat]") {
  const Run run = Stat("-r 3 -e dummy,page-faults sh -c 'echo ran'");
  INFO(run.output);
  CHECK(run.output.starts_with("ran\nran\nran\n"));
  CHECK(NumberOf(run, "page-faults") > 0);
  CHECK(NumberOf(run, "dummy") == 0);
  CHECK(Says(run, "(+- 0.00 %)"));  // of dummy
  CHECK(Says(run, "mean of 3 runs, +- "));
}

// The fields of the line of `event`.
std::vector<std::string> FieldsOf(const Run& run, const std::string& event) {
  std::istringstream lines(run.output);
  std::vector<std::string> fields;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("," + event + ",") == line.npos) continue;
    std::istringstream words(line + ",.");
    for (std::string word; std::getline(words, word, ',');) fields.push_back(word);
    fields.pop_back();
    return fields;
  }
  return fields;
}

// A command that does what `script` says in its `nth` run, and nothing in others. It counts its runs in `folder`.
std::string InRun(int nth, const std::string& script, const std::string& folder) {
  const std::string runs = folder + "/runs";
  return " sh -c 'echo >>" + runs + "; n=0; while read -r x; do n=$((n+1)); done <" + runs +
         "; [ $n != " + std::to_string(nth) + " ] || { " + script + "; }'";
}

// More faults than all else, then the interrupt that Ctrl-C would send.
const std::string kWorkAndInterrupt =
    "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do /bin/true; done; kill -INT $PPID";

TEST_CASE("the mean is that of the complete runs, and says how many they were", "[stat]") {
  // With -d, stat does not wait for the command that it was interrupted with.
  for (const std::string how : {"-r 5 -e page-faults:u ", "-r 5 -d 600 -e page-faults:u "}) {
    const perfkit::testing::TempFolder alone_folder, folder, csv_folder, json_folder;
    const Run alone = Stat(how + InRun(1, kWorkAndInterrupt, alone_folder.path()));
    const Run third = Stat(how + InRun(3, kWorkAndInterrupt, folder.path()));
    const Run csv = Stat("-x, " + how + InRun(3, kWorkAndInterrupt, csv_folder.path()));
    const Run json = Stat("-j " + how + InRun(3, kWorkAndInterrupt, json_folder.path()));
    INFO(alone.output << third.output << csv.output << json.output);
    CHECK(Says(alone, "1 of 5 runs"));
    CHECK_FALSE(Says(alone, "mean of"));
    CHECK(NumberOf(RunCommand("wc -l " + folder.path() + "/runs"), "") == 3);
    CHECK(Says(third, "mean of 2 runs, +- "));
    const double third_of_work = NumberOf(alone, "page-faults:u") / 3;
    CHECK(NumberOf(third, "page-faults:u") > 0);
    CHECK(NumberOf(third, "page-faults:u") < third_of_work);
    REQUIRE(FieldsOf(csv, "page-faults:u").size() == 8);
    CHECK(std::atof(FieldsOf(csv, "page-faults:u")[0].c_str()) < third_of_work);
    CHECK(Says(json, "\"variance\""));
    for (const Run& run : {third, csv, json}) CHECK(Says(run, "interrupted; the counts are those of 2 of 5 runs"));
  }
}

TEST_CASE("one complete run before the interrupt is reported without a mean", "[stat]") {
  const perfkit::testing::TempFolder folder;
  const Run run = Stat("-r 3 -j -e page-faults:u " + InRun(2, kWorkAndInterrupt, folder.path()));
  INFO(run.output);
  CHECK(Says(run, "1 of 3 runs"));
  CHECK_FALSE(Says(run, "variance"));
}

TEST_CASE("a command that is stopped, and one that stat alone is interrupted with, are ended", "[stat]") {
  const Run stopped = Stat("-d 0.1 -e page-faults:u sh -c 'kill -STOP $$; exec sleep 1000'");
  INFO(stopped.output);
  CHECK(NumberOf(stopped, "page-faults:u") > 0);
  CHECK(stopped.exit_code == 128 + SIGTERM);
  const Run interrupted = Stat("-e page-faults:u sh -c 'kill -INT $PPID; exec sleep 1000'");
  INFO(interrupted.output);
  CHECK(NumberOf(interrupted, "page-faults:u") > 0);
  CHECK(interrupted.exit_code == 128 + SIGTERM);
}

// The kernel stops counting it without an error.
TEST_CASE("a program that this user may not read is not counted as 0", "[stat]") {
  if (geteuid() != 0) SKIP_TEST("only root has files that others may run but not read");
  const perfkit::testing::TempFolder folder;
  const std::string unreadable = folder.path() + "/dd", work = " if=/dev/zero of=/dev/null bs=1M count=4000";
  REQUIRE(
      RunCommand("cp $(which dd) " + unreadable + " && chmod 0711 " + unreadable + " && chmod 0755 " + folder.path())
          .exit_code == 0);
  const std::string uid = std::to_string(perfkit::testing::OrdinaryUid());
  const std::string as_user = "setpriv --reuid=" + uid + " --regid=" + uid + " --clear-groups timeout 20 ";
  if (RunCommand(as_user + "test -x " STAT).exit_code != 0) {
    SKIP_TEST("an ordinary user cannot run stat here");
  }
  for (const std::string& command : {unreadable + work, "sh -c '" + unreadable + work + "; true'"}) {
    const Run user = RunCommand(as_user + STAT " -e page-faults:u " + command);
    INFO(user.output);
    CHECK(user.exit_code == 0);
    CHECK(Says(user, "n/a   page-faults:u"));
    CHECK(Says(user, "privileges (setuid)"));
    CHECK(NumberOf(Stat("-e page-faults:u " + command), "page-faults:u") > 0);
  }
  // Intervals, too, once it has used enough CPU time to tell: more than the last one.
  const std::string long_work = " if=/dev/zero of=/dev/null bs=1M count=30000";
  const Run intervals = RunCommand(as_user + STAT " -I 100 -e page-faults:u " + unreadable + long_work);
  INFO(intervals.output);
  const size_t first = intervals.output.find("n/a   page-faults:u");
  REQUIRE(first != std::string::npos);
  CHECK(intervals.output.find("n/a   page-faults:u", first + 1) != std::string::npos);
  CHECK(NumberOf(RunCommand(as_user + STAT " -e page-faults:u dd" + work), "page-faults:u") > 0);
}

TEST_CASE("its fields are perf stat's, in perf's order", "[stat]") {
  for (const std::string options : {"-x, -e page-faults:u", "-x, -r 2 -e page-faults:u"}) {
    const std::vector<std::string> ours = FieldsOf(Stat(options + " true"), "page-faults:u");
    const size_t repeats = options.find("-r") == options.npos ? 0 : 1;
    REQUIRE(ours.size() == 7 + repeats);
    CHECK(std::atof(ours[0].c_str()) > 0);
    CHECK(ours[1] == "");
    CHECK(ours[2] == "page-faults:u");
    CHECK(ours[4 + repeats] == "100.00");
    const Run perf = RunCommand("perf stat " + options + " true 2>&1 >/dev/null");
    const std::vector<std::string> theirs = FieldsOf(perf, "page-faults:u");
    if (perf.exit_code != 0 || theirs.empty()) SKIP_TEST("perf is not here: " + perf.output.substr(0, 80));
    CHECK(ours.size() == theirs.size());
    CHECK(ours[4 + repeats] == theirs[4 + repeats]);
    if (repeats != 0) CHECK(ours[3].ends_with('%') == theirs[3].ends_with('%'));
  }
}

TEST_CASE("what has no number is told as such in CSV and JSON, with its reason", "[stat]") {
  if (!Says(Stat("-e page-faults,cycles true"), "n/a")) SKIP_TEST("cycles are counted here");
  const Run csv = Stat("-x ';' -e page-faults,cycles true");
  INFO(csv.output);
  CHECK(Says(csv, "<not counted>;;cycles;"));
  CHECK(Says(csv, "stat: cycles: "));
  const Run json = Stat("-j -e page-faults,cycles true");
  INFO(json.output);
  CHECK(Says(json, "\"event\" : \"page-faults"));
  CHECK(Says(json, "{\"counter-value\" : \"<not counted>\""));
  CHECK(Says(json, "\"reason\" : \""));
}

TEST_CASE("each line of JSON is an object, at intervals and for runs", "[stat]") {
  const perfkit::testing::TempFolder folder;
  folder.Write("/check.cmake",
               "file(READ ${FILE} text)\n"
               "set(count 0)\n"
               "while(text MATCHES \"^([^\\n]*)\\n(.*)$\")\n"
               "  set(line \"${CMAKE_MATCH_1}\")\n"
               "  set(text \"${CMAKE_MATCH_2}\")\n"
               "  string(JSON event GET \"${line}\" event)\n"
               "  string(JSON value GET \"${line}\" counter-value)\n"
               "  math(EXPR count \"${count} + 1\")\n"
               "endwhile()\n"
               "message(\"lines: ${count}, rest: '${text}'\")\n");
  for (const char* arguments : {"-I 20 -e page-faults:u,cycles,task-clock:u sleep 0.1",
                                "-r 2 -e page-faults:u,cycles,task-clock:u true", "-e page-faults:u true"}) {
    const std::string file = folder.path() + "/json";
    CHECK(Stat("-j -o " + file + " " + arguments).exit_code == 0);
    const Run check = RunCommand(CMAKE " -DFILE=" + file + " -P " + folder.path() + "/check.cmake 2>&1");
    INFO(arguments << "\n" << check.output);
    CHECK(check.exit_code == 0);
    CHECK((Says(check, "lines: ") && Says(check, "rest: ''") && !Says(check, "lines: 0,")));
  }
}

TEST_CASE("a separator within a name is quoted", "[stat]") {
  CHECK(Says(Stat("-x a -e page-faults:u true"), "aa\"page-faults:u\"a"));
}

TEST_CASE("the report goes to a file on request", "[stat]") {
  const perfkit::testing::TempFolder folder;
  const std::string file = folder.path() + "/report";
  CHECK(Stat("-o " + file + " -e page-faults true").output.empty());
  CHECK(NumberOf(RunCommand("cat " + file), "page-faults") > 0);
  CHECK(Says(Stat("-o /no/such/folder/report true"), "cannot write /no/such/folder/report"));
}

TEST_CASE("how each event was read is told on request", "[stat]") {
  CHECK(Says(Stat("--verbose -e page-faults true"), "group read"));
}

}  // namespace
