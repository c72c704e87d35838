// Runs every unit test many times on a machine that is too small for it, and counts what fails.
//
//   campaign --keep FOLDER --runner RUNNER PROGRAM...
//   campaign --keep FOLDER --page FILE
//
// Two busy processes a CPU run all the time, at nice 19 like the tests. Each round runs each program once. Rounds take
// turns: as this user on one CPU, as an ordinary user on one, as this user on two, as an ordinary user on two. As root
// the programs run in a memory cgroup of 512 MiB, where another process reads a file of 1 GiB over and over: so the
// kernel takes the pages of the program's own code away again and again. The output of each run that failed is kept in
// FOLDER, and so is the table, which --page puts between the lines of kBegin and kEnd of FILE, docs/testing-perfkit.md.
//
// From the environment: PERFKIT_CAMPAIGN_ROUNDS (200), PERFKIT_CAMPAIGN_BUSY, busy processes a CPU (2),
// PERFKIT_CAMPAIGN_NICE (19), PERFKIT_CAMPAIGN_ONLY, a part of the names of programs.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::string_view kBegin = "<!-- campaign -->\n", kEnd = "<!-- end of campaign -->\n";
constexpr std::string_view kFailed = "FAILED: ";  // The listener of tests/support/main.cc writes such lines.
constexpr long kGroupBytes = 512l << 20, kChurnBytes = 1l << 30;
constexpr int kSkipped = 77, kHungSeconds = 1800;

long FromEnvironment(const char* name, long otherwise) {
  const char* const text = getenv(name);
  return text == nullptr ? otherwise : atol(text);
}

std::string ReadAll(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

bool WriteText(const std::string& path, const std::string& text) {
  return static_cast<bool>(std::ofstream(path) << text << std::flush);
}

std::vector<int> AllowedCpus() {
  cpu_set_t allowed;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
  }
  return cpus;
}

void BindTo(const std::vector<int>& cpus, size_t count) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (size_t i = 0; i < count && i < cpus.size(); ++i) CPU_SET(cpus[i], &set);
  sched_setaffinity(0, sizeof(set), &set);
}

// A child process; it ends with this one.
template <class Body>
pid_t Start(Body&& body) {
  fflush(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  body();
  _exit(1);
}

void End(pid_t child) {
  if (child <= 0) return;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// A cgroup with little memory; of version 2 or 1. Without the right to make one, there is none.
class SmallMemory {
 public:
  SmallMemory() {
    const std::string name = "/perfkit_campaign." + std::to_string(getpid());
    for (const auto& [root, limit] :
         {std::pair("/sys/fs/cgroup", "/memory.max"), std::pair("/sys/fs/cgroup/memory", "/memory.limit_in_bytes")}) {
      folder_ = root + name;
      const bool is_group = mkdir(folder_.c_str(), 0755) == 0 && access((folder_ + limit).c_str(), W_OK) == 0;
      if (is_group && WriteText(folder_ + limit, std::to_string(kGroupBytes))) return;
      rmdir(folder_.c_str());
    }
    folder_.clear();
  }
  ~SmallMemory() {
    if (!folder_.empty()) rmdir(folder_.c_str());
  }
  SmallMemory(const SmallMemory&) = delete;
  SmallMemory& operator=(const SmallMemory&) = delete;

  bool is_there() const { return !folder_.empty(); }
  void Join() const {
    if (is_there()) WriteText(folder_ + "/cgroup.procs", std::to_string(getpid()));
  }

 private:
  std::string folder_;
};

// Reads `path`, a file of holes, so that other cached pages of this cgroup make room. Never returns.
void ChurnCache(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, kChurnBytes) != 0) _exit(1);
  unlink(path.c_str());
  std::vector<char> piece(1 << 20);
  for (off_t at = 0;; at = (at + static_cast<off_t>(piece.size())) % kChurnBytes) {
    if (pread(file, piece.data(), piece.size(), at) < 0) _exit(1);
    usleep(2000);
  }
}

// Drops the cached pages of a program: they are charged to the cgroup that reads them next.
void DropCached(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  close(file);
}

struct Configuration {
  bool ordinary;  // An ordinary user's.
  size_t cpus;

  std::string name() const {
    return std::string(ordinary         ? "ordinary user, "
                       : geteuid() == 0 ? "root, "
                                        : "this user, ") +
           (cpus == 1 ? "one CPU" : "two CPUs");
  }
};

struct Row {
  size_t runs = 0, failures = 0;
  std::map<std::string, size_t> where;  // Failures by configuration.
  std::string log;                      // The last one's.
};

class Campaign {
 public:
  Campaign(std::string keep, std::string runner, std::vector<std::string> programs)
      : keep_(std::move(keep)), runner_(std::move(runner)), programs_(std::move(programs)) {
    std::filesystem::create_directories(keep_);
    for (const size_t cpus : {1, 2}) {
      if (cpus > cpus_.size()) continue;
      configurations_.push_back({false, cpus});
      if (geteuid() == 0) configurations_.push_back({true, cpus});
    }
  }

  // Returns the number of failures.
  size_t Run() {
    std::vector<pid_t> beside;
    for (const int cpu : cpus_) {
      for (long i = 0; i < FromEnvironment("PERFKIT_CAMPAIGN_BUSY", 2); ++i) {
        beside.push_back(Start([this, cpu] {
          BindTo({cpu}, 1);
          setpriority(PRIO_PROCESS, 0, nice_);  // A test at nice 19 has 1 % of a CPU beside others at 0.
          for (unsigned n = 0;; ++n) {
            asm volatile("" : "+r"(n));
          }
        }));
      }
    }
    if (memory_.is_there()) {
      beside.push_back(Start([this] { memory_.Join(), ChurnCache(keep_ + "/holes"); }));
      for (const std::string& program : programs_) DropCached(program);
    }
    const char* const only = getenv("PERFKIT_CAMPAIGN_ONLY");
    for (long round = 0; round < rounds_; ++round) {
      const Configuration& configuration = configurations_[static_cast<size_t>(round) % configurations_.size()];
      for (const std::string& program : programs_) {
        if (only == nullptr || program.find(only) != program.npos) RunOnce(program, configuration, round);
      }
      WriteText(keep_ + "/table.md", Table(round + 1));
    }
    for (const pid_t child : beside) End(child);
    printf("%s", Table(rounds_).c_str());
    return failures_;
  }

 private:
  void RunOnce(const std::string& program, const Configuration& configuration, long round) {
    const std::string name = std::filesystem::path(program).filename().string();
    const std::string log = keep_ + "/" + name + "." + std::to_string(round) + ".log";
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    const pid_t child = Start([&] { Exec(program, configuration, log); });
    const int status = Wait(child, begin + std::chrono::seconds(kHungSeconds));
    const bool passed = WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kSkipped);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin).count();
    printf("round %ld of %ld, %s, %s: %s, %ld s\n", round + 1, rounds_, name.c_str(), configuration.name().c_str(),
           passed ? "passed" : "FAILED", static_cast<long>(seconds));
    fflush(stdout);
    ++rows_[name].runs;
    if (passed) return (void)unlink(log.c_str());
    ++failures_;
    ++rows_[name].failures;
    for (const std::string& test : FailedTests(log)) {
      Row& row = rows_[name + ": " + test];
      ++row.failures;
      ++row.where[configuration.name()];
      row.log = std::filesystem::path(log).filename().string();
    }
  }

  // In the child: becomes the test's program.
  void Exec(const std::string& program, const Configuration& configuration, const std::string& log) {
    setpgid(0, 0);
    memory_.Join();
    BindTo(cpus_, configuration.cpus);
    setpriority(PRIO_PROCESS, 0, nice_);
    const int output = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    std::vector<const char*> arguments = {runner_.c_str(), "--notes", "/dev/null"};
    if (configuration.ordinary) arguments.insert(arguments.end(), {"--user", "ordinary"});
    arguments.insert(arguments.end(), {"--", program.c_str(), nullptr});
    execv(runner_.c_str(), const_cast<char**>(arguments.data()));
    perror(runner_.c_str());
  }

  // Returns how the child ended. One that hangs is told to abort, so that it says in which test.
  static int Wait(pid_t child, std::chrono::steady_clock::time_point until) {
    int status = 0;
    bool told = false;
    while (waitpid(child, &status, WNOHANG) == 0) {
      usleep(20'000);
      if (std::chrono::steady_clock::now() < until) continue;
      const std::string task = "/proc/" + std::to_string(child) + "/task/" + std::to_string(child) + "/children";
      const int program = atoi(ReadAll(task).c_str());
      kill(told || program <= 0 ? -child : program, told ? SIGKILL : SIGABRT);
      told = true;
      until += std::chrono::seconds(30);
    }
    return status;
  }

  // Returns the names and tags of the test cases that failed.
  static std::vector<std::string> FailedTests(const std::string& log) {
    std::vector<std::string> tests;
    std::ifstream file(log);
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(kFailed) && line.size() > kFailed.size()) tests.push_back(line.substr(kFailed.size()));
    }
    if (tests.empty()) tests.push_back("ended without a word");
    return tests;
  }

  std::string Table(long rounds) const {
    std::string table = std::to_string(rounds) + " rounds, nice " + std::to_string(nice_) + ", " +
                        std::to_string(FromEnvironment("PERFKIT_CAMPAIGN_BUSY", 2)) + " busy processes a CPU, " +
                        (memory_.is_there() ? "in a cgroup of 512 MiB" : "without a cgroup of its own") +
                        ".\n\n| test | runs | failures | where | log of the last |\n|---|---:|---:|---|---|\n";
    for (const auto& [name, row] : rows_) {
      std::string where;
      for (const auto& [configuration, count] : row.where) {
        where += (where.empty() ? "" : "; ") + configuration + ": " + std::to_string(count);
      }
      table += "| " + name + " | " + (row.runs == 0 ? "" : std::to_string(row.runs)) + " | " +
               std::to_string(row.failures) + " | " + where + " | " + row.log + " |\n";
    }
    return table;
  }

  const std::string keep_, runner_;
  const std::vector<std::string> programs_;
  const std::vector<int> cpus_ = AllowedCpus();
  const long rounds_ = FromEnvironment("PERFKIT_CAMPAIGN_ROUNDS", 200);
  const int nice_ = static_cast<int>(FromEnvironment("PERFKIT_CAMPAIGN_NICE", 19));
  const SmallMemory memory_;
  std::vector<Configuration> configurations_;
  std::map<std::string, Row> rows_;  // Of programs, and of "<program>: <test case> <tags>".
  size_t failures_ = 0;
};

// Puts the last campaign's table into the page. Returns the exit code.
int WritePage(const std::string& keep, const std::string& path) {
  std::string text = ReadAll(path);
  const size_t begin = text.find(kBegin), end = text.find(kEnd);
  const std::string table = ReadAll(keep + "/table.md");
  if (table.empty() || begin == text.npos || end == text.npos || end < begin) return 1;
  text.replace(begin + kBegin.size(), end - begin - kBegin.size(), table);
  return WriteText(path, text) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string keep, runner, page;
  int first = 1;
  for (; first + 1 < argc && std::string_view(argv[first]).starts_with("--"); first += 2) {
    const std::string_view name = argv[first];
    if (name == "--keep") keep = argv[first + 1];
    if (name == "--runner") runner = argv[first + 1];
    if (name == "--page") page = argv[first + 1];
  }
  if (keep.empty()) return 1;
  if (!page.empty()) return WritePage(keep, page);
  return Campaign(keep, runner, {argv + first, argv + argc}).Run() == 0 ? 0 : 1;
}
