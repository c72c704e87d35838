// Runs one test program for CTest: copies its output, keeps its skips and its times for the last test, and can run it as
// an ordinary user.
//
//   runner --notes FILE [--user ordinary] [--aslr off] -- PROGRAM ARGUMENT...
//
// CTest hides the output of passed tests. So each line "SKIPPED: test: reason" is also written to FILE, followed by
// "TIMES: <CPU-seconds of the program and its children> <elapsed seconds>"; tests/runner/tally.cc prints them all. With --user ordinary, the program has no groups and no capabilities, because
// most users of perfkit are not root, and the kernel treats them differently. Each such run has a user ID of its own:
// the kernel accounts locked memory by user, and one test must not use up another's. --aslr off is for ThreadSanitizer,
// whose fixed shadow memory collides with the high-entropy layouts of newer kernels. The exit code is the program's
// own.
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>

namespace {

constexpr int kSkipped = 77;

struct Options {
  const char* notes = nullptr;
  uid_t uid = 0;  // 0 means the current user.
  bool aslr = true;
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
    if (name == "--user") options.uid = 1'000'000 + static_cast<uid_t>(getpid());
  }
  return false;
}

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

// Copies `input` to stdout as it arrives, and each whole line about a skip to `notes`.
void CopyOutput(int input, FILE* notes) {
  std::string line;
  char buffer[4096];
  ssize_t got;
  while ((got = read(input, buffer, sizeof(buffer))) > 0 || (got < 0 && errno == EINTR)) {
    if (got < 0) continue;
    fwrite(buffer, 1, static_cast<size_t>(got), stdout);
    fflush(stdout);
    for (ssize_t i = 0; i < got; ++i) {
      line += buffer[i];
      if (buffer[i] != '\n') continue;
      if (notes != nullptr && line.starts_with("SKIPPED: ")) fputs(line.c_str(), notes);
      line.clear();
    }
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
int ExitCode(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  printf("runner: killed by signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return 128 + WTERMSIG(status);
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

int Run(const Options& options, FILE* notes) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) RunChild(options, ends[1]);
  close(ends[1]);
  if (child < 0) return 1;
  CopyOutput(ends[0], notes);
  int status = 0;
  rusage usage;
  while (wait4(child, &status, 0, &usage) < 0) {
    if (errno != EINTR) return 1;
  }
  if (notes != nullptr) {
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    fprintf(notes, "TIMES: %.2f %.2f\n", Seconds(usage.ru_utime) + Seconds(usage.ru_stime), elapsed.count());
  }
  return ExitCode(status);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, options)) {
    fprintf(stderr, "usage: runner --notes FILE [--user ordinary] [--aslr off] -- PROGRAM ARGUMENT...\n");
    return 1;
  }
  FILE* const notes = fopen(options.notes, "we");
  if (notes == nullptr) fprintf(stderr, "runner: cannot write %s: %s\n", options.notes, strerror(errno));
  int code;
  if (options.uid != 0 && geteuid() != 0) {
    code = SkipAll(notes, "needs root to become another user; this run is an ordinary user's already");
  } else if (options.uid != 0 && !CanReach(options.uid, options.program[0])) {
    code = SkipAll(notes, "user " + std::to_string(options.uid) + " cannot reach " + options.program[0]);
  } else {
    code = Run(options, notes);
  }
  if (notes != nullptr) fclose(notes);
  return code;
}
