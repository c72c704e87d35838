// Other people's profilers of this process, to be run beside a session: each counts its samples by function.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <sstream>
#include <string>

#include "tests/support/run.h"
#include "tests/support/temp_folder.h"

namespace perfkit::session {

using SamplesByFunction = std::map<std::string, uint64_t>;

// `perf record` of all threads, from construction to Stop.
class PerfRecord {
 public:
  explicit PerfRecord(const std::string& options) {
    if (mkfifo(control_.c_str(), 0600) != 0 || mkfifo(answer_.c_str(), 0600) != 0) return;
    // Opened for both, no open waits for the other side, and a write needs no reader.
    control_fd_ = open(control_.c_str(), O_RDWR | O_CLOEXEC);
    answer_fd_ = open(answer_.c_str(), O_RDWR | O_CLOEXEC);
    process_ = testing::RunCommand("perf record -B -q " + options + " -p " + std::to_string(getpid()) + " -o " + data_ +
                                   " -D -1 --control=fifo:" + control_ + "," + answer_ + " > " + log_ +
                                   " 2>&1 < /dev/null & echo $!")
                   .output;
    process_.erase(process_.find_last_not_of('\n') + 1);
    is_running_ = Ask("enable\n");
  }
  ~PerfRecord() {
    Stop();
    close(control_fd_), close(answer_fd_);
  }
  PerfRecord(const PerfRecord&) = delete;
  PerfRecord& operator=(const PerfRecord&) = delete;

  // Why it does not sample; "" if it does.
  std::string error() const { return is_running_ ? "" : "perf record: " + testing::RunCommand("cat " + log_).output; }

  SamplesByFunction Stop() {
    if (!is_running_) return {};
    is_running_ = false;
    Ask("stop\n");
    while (IsAlive()) usleep(1000);
    SamplesByFunction samples;
    std::istringstream report(
        testing::RunCommand("perf report --stdio --no-children -F sample,symbol -t '|' -i " + data_ + " 2>/dev/null")
            .output);
    for (std::string line; std::getline(report, line);) {
      char name[512] = "";
      unsigned long long count = 0;
      if (sscanf(line.c_str(), " %llu |[%*c] %511[^\n]", &count, name) == 2) samples[name] += count;
    }
    return samples;
  }

 private:
  bool IsAlive() const { return testing::RunCommand("kill -0 " + process_).exit_code == 0; }
  // Returns false if perf ended instead of answering.
  bool Ask(const std::string& command) const {
    if (write(control_fd_, command.data(), command.size()) != static_cast<ssize_t>(command.size())) return false;
    pollfd answered{answer_fd_, POLLIN, 0};
    while (poll(&answered, 1, 10) != 1) {
      if (!IsAlive()) return false;
    }
    char answer[16];
    return read(answer_fd_, answer, sizeof(answer)) > 0;
  }

  testing::TempFolder folder_;
  const std::string control_ = folder_.path() + "/control", answer_ = folder_.path() + "/answer",
                    data_ = folder_.path() + "/perf.data", log_ = folder_.path() + "/log";
  int control_fd_ = -1, answer_fd_ = -1;
  std::string process_;
  bool is_running_ = false;
};

// gperftools, from construction to Stop; its file is read by pprof.
class Gperftools {
 public:
  Gperftools() : library_(dlopen("libprofiler.so.0", RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) return;
    setenv("CPUPROFILE_FREQUENCY", "1000", 1);
    is_running_ = Find<int(const char*)>("ProfilerStart")(data_.c_str()) != 0;
  }
  ~Gperftools() { Stop(); }  // the library stays: a signal may be under way
  Gperftools(const Gperftools&) = delete;
  Gperftools& operator=(const Gperftools&) = delete;

  std::string error() const { return is_running_ ? "" : "libprofiler.so.0 is not installed"; }

  SamplesByFunction Stop() {
    if (!is_running_) return {};
    is_running_ = false;
    Find<void()>("ProfilerStop")();
    SamplesByFunction samples;
    // "     1.23s 61.50% 61.50%      1.23s 61.50%  name"
    std::istringstream report(
        testing::RunCommand("go tool pprof -top -sample_index=samples -nodefraction=0 -nodecount=0 "
                            "/proc/" +
                            std::to_string(getpid()) + "/exe " + data_ + " 2>/dev/null")
            .output);
    for (std::string line; std::getline(report, line);) {
      char name[512] = "";
      unsigned long long count = 0;
      if (sscanf(line.c_str(), " %llu %*f%% %*f%% %*u %*f%% %511[^\n]", &count, name) == 2) samples[name] += count;
    }
    return samples;
  }

 private:
  template <class Function>
  Function* Find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

  testing::TempFolder folder_;
  const std::string data_ = folder_.path() + "/cpu.prof";
  void* const library_;
  bool is_running_ = false;
};

}  // namespace perfkit::session
