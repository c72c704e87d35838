// The first and only process of the test machine: runs the programs that the kernel's command line names.
//
//   ... -- PROGRAM[@UID][,ARGUMENT]...          (the kernel passes the text after "--" to init unchanged)
//
// Each is a file of /tests, run as root or as user UID. Its output goes to the results channel, between "@begin
// PROGRAM" and "@end PROGRAM CODE"; tests/machine/boot.cc reads it on the other side. "@done" comes last, then the
// power goes off. A program called "shell" gets the console instead. Linked statically, because nothing else is
// installed there.
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace {

// A second serial port, because the kernel prints on the first at any time.
constexpr const char* kResults = "/dev/ttyS0";

void Mount(const char* type, const char* where) {
  mkdir(where, 0755);
  if (mount(type, where, type, 0, nullptr) != 0) printf("init: cannot mount %s: %s\n", where, strerror(errno));
}

void WriteFile(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) printf("init: %s: %s\n", path, strerror(errno));
  if (fd >= 0) close(fd);
}

// Settings as on most machines, but with user-space reads permitted. A kernel before 5.17 lacks that setting.
void PrepareSystem() {
  Mount("proc", "/proc");
  Mount("sysfs", "/sys");
  Mount("tracefs", "/sys/kernel/tracing");
  Mount("devtmpfs", "/dev");
  chmod("/tmp", 01777);
  const char* const paranoid = getenv("PARANOID");
  WriteFile("/proc/sys/kernel/perf_event_paranoid", paranoid != nullptr ? paranoid : "2");
  // A sample takes long here, by the machine's clock, and the kernel would permit fewer and fewer of them.
  WriteFile("/proc/sys/kernel/perf_cpu_time_max_percent", "0");
  if (access("/proc/sys/kernel/perf_user_access", F_OK) == 0) WriteFile("/proc/sys/kernel/perf_user_access", "1");
  const rlimit descriptors{20000, 20000};
  setrlimit(RLIMIT_NOFILE, &descriptors);
  sleep(1);  // So that no clock of the machine is 0.
  setenv("PATH", "/bin", 1);
  setenv("PERFKIT_OWN_MACHINE", "1", 1);  // Tests may change its settings: tests/open/settings_test.cc.
  setenv("HOME", "/tmp", 1);
}

// Passes bytes unchanged: a terminal would turn each newline into two characters.
FILE* OpenResults() {
  const int fd = open(kResults, O_WRONLY | O_NOCTTY | O_CLOEXEC);
  termios mode{};
  if (fd < 0 || tcgetattr(fd, &mode) != 0) return nullptr;
  cfmakeraw(&mode);
  tcsetattr(fd, TCSANOW, &mode);
  return fdopen(fd, "w");
}

std::vector<std::string> Split(const char* text) {
  std::vector<std::string> words(1);
  for (; *text != '\0'; ++text) {
    if (*text == ',')
      words.emplace_back();
    else
      words.back() += *text;
  }
  return words;
}

[[noreturn]] void Become(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  const size_t at = words[0].find('@');
  const uid_t uid = at < words[0].size() ? static_cast<uid_t>(atoi(words[0].c_str() + at + 1)) : 0;
  const std::string path = words[0] == "shell" ? "/bin/sh" : "/tests/" + words[0].substr(0, at);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  if (words[0] == "shell") arguments[0] = const_cast<char*>("sh");  // busybox uses its name.
  arguments.push_back(nullptr);
  if (uid != 0 && (setgroups(0, nullptr) != 0 || setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0)) {
    printf("init: cannot become user %u: %s\n", uid, strerror(errno));
  }
  execv(path.c_str(), arguments.data());
  printf("init: cannot run %s: %s\n", path.c_str(), strerror(errno));
  fflush(stdout);
  _exit(127);
}

// Copies until the other end is closed. Returns true if the last byte was a newline.
bool Copy(int from, FILE* to) {
  char buffer[4096], last = '\n';
  ssize_t got;
  while ((got = read(from, buffer, sizeof(buffer))) > 0 || (got < 0 && errno == EINTR)) {
    if (got <= 0) continue;
    fwrite(buffer, 1, static_cast<size_t>(got), to);
    fflush(to);
    last = buffer[got - 1];
  }
  return last == '\n';
}

int Wait(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) != child) {
  }
  while (waitpid(-1, nullptr, WNOHANG) > 0) {  // Orphans are reparented to process 1.
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void Run(const std::vector<std::string>& words, FILE* results) {
  fprintf(results, "@begin %s\n", words[0].c_str());
  fflush(results);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    Become(words);
  }
  close(ends[1]);
  const bool whole = Copy(ends[0], results);
  close(ends[0]);
  fprintf(results, "%s@end %s %d\n", whole ? "" : "\n", words[0].c_str(), Wait(child));
  fflush(results);
}

void RunShell() {
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    Become({"shell"});
  }
  Wait(child);
}

}  // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  PrepareSystem();
  FILE* const results = OpenResults();
  for (int i = 1; i < argc; ++i) {
    const std::vector<std::string> words = Split(argv[i]);
    if (words[0] == "shell")
      RunShell();
    else if (results != nullptr)
      Run(words, results);
    else
      printf("init: no %s to write results to\n", kResults);
  }
  if (results != nullptr) {
    fprintf(results, "@done\n");
    fflush(results);
    tcdrain(fileno(results));
  }
  reboot(RB_POWER_OFF);
}
