// Runs one test program for CTest: copies its output, keeps its skips and its times for the last test, and can run it as
// an ordinary user.
//
//   runner --notes FILE [--user ordinary] [--aslr off] [--limit SECONDS] -- PROGRAM ARGUMENT...
//
// CTest hides the output of passed tests, and that of failed ones is long. So each line "SKIPPED: test: reason" is also
// written to FILE, and what Catch2 says of a failure with "FAILURE: " before each line, followed by "TIMES: <CPU-seconds of
// the program and its children> <elapsed seconds>"; tests/runner/tally.cc prints them all.
// With --user ordinary, the program has no groups and no capabilities, because most users of perfkit are not root, and the
// kernel treats them differently. Each such run has a user ID of its own: the kernel accounts locked memory by user, and
// one test must not use up another's. --aslr off is for ThreadSanitizer, whose fixed shadow memory collides with the
// high-entropy layouts of newer kernels. A program that has not ended after --limit hangs: the stacks of its threads are
// printed, and SIGABRT has its main say which test case it was in. The exit code is the program's own.
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace {

constexpr int kSkipped = 77;

struct Options {
  const char* notes = nullptr;
  uid_t uid = 0;  // 0 means the current user.
  bool aslr = true;
  std::chrono::seconds limit = std::chrono::hours(1000);
  char** program = nullptr;  // argv of the test; ends with nullptr.
};

bool Parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--") {
      options.program = argv + i + 1;
      return options.notes != nullptr;
    }
    if (name == "--notes") options.notes = argv[i + 1];
    if (name == "--aslr") options.aslr = std::string_view(argv[i + 1]) != "off";
    if (name == "--limit") options.limit = std::chrono::seconds(atol(argv[i + 1]));
    if (name == "--user") options.uid = 1'000'000 + static_cast<uid_t>(getpid());
  }
  return false;
}

// Keeps of a program's output what is told at the end of a run.
class Notes {
 public:
  explicit Notes(FILE* file) : file_(file) {}

  void Take(std::string_view output) {
    for (const char byte : output) {
      line_ += byte;
      if (byte != '\n') continue;
      if (file_ != nullptr) TakeLine();
      line_.clear();
    }
  }

 private:
  static constexpr int kMaxLines = 20, kMaxFailures = 10;  // a failure's lines, a program's failures

  void TakeLine() {
    if (line_.starts_with("SKIPPED: ")) fputs(line_.c_str(), file_);
    if (line_.ends_with(": FAILED:\n") && ++failures_ <= kMaxFailures) left_ = kMaxLines;
    const bool ends = line_.starts_with("---") || line_.starts_with("===") || line_.starts_with("...");
    if (ends) left_ = 0;
    const bool is_name = line_.starts_with("FAILED: ");
    if (left_ <= 0 && !is_name) return;
    fprintf(file_, "FAILURE: %s", line_.c_str());
    left_ = is_name ? 0 : left_ - 1;
  }

  FILE* file_;
  std::string line_;
  int left_ = 0, failures_ = 0;
};

// Prints a skip of the whole test, and writes it to `notes`.
int SkipAll(FILE* notes, const std::string& reason) {
  for (FILE* out : {stdout, notes}) {
    if (out != nullptr) fprintf(out, "SKIPPED: all tests: %s\n", reason.c_str());
  }
  return kSkipped;
}

// In the child: becomes `uid` for good.
bool BecomeUser(uid_t uid) {
  return setgroups(0, nullptr) == 0 && setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0;
}

[[noreturn]] void RunChild(const Options& options, int output) {
  setpgid(0, 0);  // so that what it has started can be ended with it
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  if (options.uid != 0 && !BecomeUser(options.uid)) {
    fprintf(stderr, "runner: cannot become user %u: %s\n", options.uid, strerror(errno));
    _exit(1);
  }
  if (!options.aslr) personality(ADDR_NO_RANDOMIZE);  // If this is not permitted, the program says so.
  prctl(PR_SET_PDEATHSIG, SIGKILL);                   // After setresuid, which clears it.
  prctl(PR_SET_DUMPABLE, 1);  // setresuid clears this too; without it /proc/self belongs to root.
  execv(options.program[0], options.program);
  fprintf(stderr, "runner: cannot run %s: %s\n", options.program[0], strerror(errno));
  _exit(1);
}

using Clock = std::chrono::steady_clock;

// Prints the stacks of the threads of a program that hangs, if there is a gdb, and ends it and what it has started.
void EndHanging(pid_t program, std::chrono::seconds limit) {
  printf("runner: no end after %lld s. Its threads:\n", static_cast<long long>(limit.count()));
  fflush(stdout);
  const pid_t debugger = fork();
  if (debugger == 0) {
    alarm(60);
    dup2(STDOUT_FILENO, STDERR_FILENO);
    const std::string pid = std::to_string(program);
    execlp("gdb", "gdb", "-nx", "-batch", "-p", pid.c_str(), "-ex", "thread apply all backtrace 16", nullptr);
    printf("runner: no gdb to print them: %s\n", strerror(errno));
    fflush(stdout);
    _exit(1);
  }
  if (debugger > 0) waitpid(debugger, nullptr, 0);
  kill(program, SIGABRT);
  sleep(2);
  kill(-program, SIGKILL);
}

// Copies `input` to stdout and to `notes` as it arrives, until `deadline` or its end. Returns whether it has ended.
bool CopyOutput(int input, Notes& notes, Clock::time_point deadline) {
  char buffer[4096];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd waited{.fd = input, .events = POLLIN, .revents = 0};
    const int ready = poll(&waited, 1, static_cast<int>(std::min<int64_t>(left.count(), 60'000)));
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t got = read(input, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    fwrite(buffer, 1, static_cast<size_t>(got), stdout);
    fflush(stdout);
    notes.Take({buffer, static_cast<size_t>(got)});
  }
}

// Returns true if `uid` may reach and run `path`: each folder on the way must permit it.
bool CanReach(uid_t uid, const char* path) {
  const pid_t child = fork();
  if (child == 0) _exit(BecomeUser(uid) && access(path, X_OK) == 0 ? 0 : 1);
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

// Returns the exit code of a program that ended with `status`, as a shell reports it.
int ExitCode(int status, FILE* notes) {
  if (WIFEXITED(status)) {
    const int code = WEXITSTATUS(status);
    if (notes != nullptr && code != 0 && code != kSkipped) fprintf(notes, "FAILURE: exit code %d\n", code);
    return code;
  }
  for (FILE* const out : {stdout, notes}) {
    if (out == nullptr) continue;
    fprintf(out, "%srunner: killed by signal %d (%s)\n", out == notes ? "FAILURE: " : "", WTERMSIG(status),
            strsignal(WTERMSIG(status)));
  }
  return 128 + WTERMSIG(status);
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

int Run(const Options& options, FILE* notes) {
  const Clock::time_point start = Clock::now();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) RunChild(options, ends[1]);
  close(ends[1]);
  if (child < 0) return 1;
  Notes taken(notes);
  if (!CopyOutput(ends[0], taken, start + options.limit)) {
    EndHanging(child, options.limit);
    CopyOutput(ends[0], taken, Clock::now() + std::chrono::seconds(10));
  }
  int status = 0;
  rusage usage;
  while (wait4(child, &status, 0, &usage) < 0) {
    if (errno != EINTR) return 1;
  }
  if (notes != nullptr) {
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    fprintf(notes, "TIMES: %.2f %.2f\n", Seconds(usage.ru_utime) + Seconds(usage.ru_stime), elapsed.count());
  }
  return ExitCode(status, notes);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, options)) {
    fprintf(stderr, "usage: runner --notes FILE [--user ordinary] [--aslr off] [--limit SECONDS] -- PROGRAM ARGUMENT...\n");
    return 1;
  }
  FILE* const notes = fopen(options.notes, "we");
  if (notes == nullptr) fprintf(stderr, "runner: cannot write %s: %s\n", options.notes, strerror(errno));
  // The program may be one of the system's, with a script of this project: the runner is among what was built.
  const std::string runner = std::filesystem::read_symlink("/proc/self/exe");
  const bool reached = options.uid == 0 || CanReach(options.uid, runner.c_str());
  const char* const needed = reached ? options.program[0] : runner.c_str();
  int code;
  if (options.uid != 0 && geteuid() != 0) {
    code = SkipAll(notes, "needs root to become another user; this run is an ordinary user's already");
  } else if (options.uid != 0 && !CanReach(options.uid, needed)) {
    code = SkipAll(notes, "user " + std::to_string(options.uid) + " cannot reach " + needed);
  } else {
    code = Run(options, notes);
  }
  if (notes != nullptr) fclose(notes);
  return code;
}
