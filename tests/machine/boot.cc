// Boots the test machine and splits its output: one file for each program that ran in it.
//
//   boot --results FOLDER --console FILE --limit SECONDS [--absent FILE]... -- QEMU ARGUMENT...
//
// QEMU's standard output is the results channel of tests/machine/init.cc. FOLDER gets PROGRAM.txt (its output) and
// PROGRAM.code (its exit code), from which tests/machine/result.cc makes a test. A machine that does not finish in time
// is killed; the end of its console, which QEMU writes to FILE, is printed and written to FOLDER/report. SECONDS limits
// QEMU's own CPU time, and half of the elapsed time, because other tests run beside it. Exit code 0: the programs'
// results are complete, including a program that did not end. Exit code 1: the machine failed between two programs. If
// a FILE of --absent exists, a part of the machine is missing: that file says which, and so do all results.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int kSkipped = 77;

using Clock = std::chrono::steady_clock;

struct Options {
  std::string results, console;
  std::vector<std::string> absent;
  int limit_s = 0;
  char** qemu = nullptr;  // Ends with nullptr.
};

bool Parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--") {
      options.qemu = argv + i + 1;
      return !options.results.empty() && !options.console.empty() && options.limit_s > 0;
    }
    if (name == "--results") options.results = argv[i + 1];
    if (name == "--console") options.console = argv[i + 1];
    if (name == "--absent") options.absent.push_back(argv[i + 1]);
    if (name == "--limit") options.limit_s = atoi(argv[i + 1]);
  }
  return false;
}

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Parses the channel line by line.
class Results {
 public:
  explicit Results(std::string folder) : folder_(std::move(folder)) {}

  bool done() const { return done_; }
  const std::string& program() const { return program_; }  // The running program; "" between two.

  void Add(std::string_view bytes) {
    for (const char c : bytes) {
      line_ += c;
      if (c == '\n') TakeLine();
    }
  }

 private:
  void TakeLine() {
    if (line_.starts_with("@begin ")) {
      Begin(line_.substr(7, line_.size() - 8));
    } else if (line_.starts_with("@end ")) {
      End(line_.substr(line_.rfind(' ') + 1));
    } else if (line_ == "@done\n") {
      done_ = true;
    } else {
      text_ << line_ << std::flush;
    }
    line_.clear();
  }

  void Begin(const std::string& program) {
    program_ = program;
    start_ = Clock::now();
    text_ = std::ofstream(folder_ + "/" + program + ".txt");
  }

  void End(const std::string& code) {
    text_.close();
    std::ofstream(folder_ + "/" + program_ + ".code") << code;
    printf("%6.1f s  %s ended with %s", SecondsSince(start_), program_.c_str(), code.c_str());
    fflush(stdout);
    program_.clear();
  }

  std::string folder_, line_, program_;
  std::ofstream text_;
  Clock::time_point start_;
  bool done_ = false;
};

pid_t Start(const Options& options, int output) {
  const pid_t child = fork();
  if (child != 0) return child;
  const auto limit_s = static_cast<rlim_t>(options.limit_s);
  const rlimit limit{limit_s, limit_s};
  setrlimit(RLIMIT_CPU, &limit);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(output, STDOUT_FILENO);
  execvp(options.qemu[0], options.qemu);
  fprintf(stderr, "boot: cannot run %s: %s\n", options.qemu[0], strerror(errno));
  _exit(127);
}

// Reads until the channel closes, and returns true; returns false if the time is over.
bool ReadAll(int channel, Clock::time_point start, int limit_s, Results& results) {
  char buffer[4096];
  while (true) {
    const double left_s = limit_s - SecondsSince(start);
    pollfd wait{channel, POLLIN, 0};
    if (left_s <= 0) return false;
    if (poll(&wait, 1, static_cast<int>(left_s * 1000) + 1) <= 0) continue;
    const ssize_t got = read(channel, buffer, sizeof(buffer));
    if (got == 0 || (got < 0 && errno != EINTR)) return true;
    if (got > 0) results.Add({buffer, static_cast<size_t>(got)});
  }
}

// Writes the last lines of the file at `path`.
void WriteEnd(const std::string& path, FILE* out) {
  constexpr size_t kLines = 40;
  std::ifstream file(path);
  std::deque<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (lines.size() == kLines) lines.pop_front();
    lines.push_back(line);
  }
  fprintf(out, "the end of its console, %s:\n", path.c_str());
  for (const std::string& line : lines) fprintf(out, "  | %s\n", line.c_str());
}

// Returns true if there is no machine, after reporting that here and in `absent` among the results.
bool IsAbsent(const Options& options) {
  for (const std::string& path : options.absent) {
    std::string reason;
    if (std::ifstream file(path); !std::getline(file, reason)) continue;
    printf("SKIPPED: all tests: %s\n", reason.c_str());
    std::ofstream(options.results + "/absent") << reason << '\n';
    return true;
  }
  return false;
}

int Boot(const Options& options) {
  std::filesystem::remove_all(options.results);
  std::filesystem::create_directories(options.results);
  if (IsAbsent(options)) return kSkipped;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return 1;
  const Clock::time_point start = Clock::now();
  Results results(options.results);
  const pid_t child = Start(options, ends[1]);
  close(ends[1]);
  const bool ended = child > 0 && ReadAll(ends[0], start, 2 * options.limit_s, results);
  if (!ended && child > 0) kill(child, SIGKILL);
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  if (results.done() && ended && status == 0) {
    printf("%6.1f s  from power on to power off\n", SecondsSince(start));
    return 0;
  }
  FILE* const report = fopen((options.results + "/report").c_str(), "we");
  for (FILE* const out : {stdout, report}) {
    if (out == nullptr) continue;
    fprintf(out, "the machine %s after %.0f s, %s%s (status %d)\n", ended ? "ended" : "was killed", SecondsSince(start),
            results.program().empty() ? "between two programs" : "in ", results.program().c_str(), status);
    WriteEnd(options.console, out);
  }
  if (report != nullptr) fclose(report);
  return results.program().empty() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, options)) {
    fprintf(stderr,
            "usage: boot --results FOLDER --console FILE --limit SECONDS [--absent FILE]... -- QEMU ARGUMENT...\n");
    return 1;
  }
  return Boot(options);
}
