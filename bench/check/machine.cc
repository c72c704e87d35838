// Reads /proc and sysfs.
#include "bench/check/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <thread>

namespace bench {
namespace {

// Returns the first line of a file, or `otherwise`.
std::string FirstLine(const char* path, const char* otherwise) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? line : otherwise;
}

// Returns the value of `key` for the first CPU of /proc/cpuinfo.
std::string CpuInfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with(key) && colon != line.npos) return line.substr(colon + 2);
  }
  return "";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> DescribeMachine() {
  const bool virtual_machine = CpuInfo("flags").find(" hypervisor") != std::string::npos;
  utsname system{};
  uname(&system);
  return {
      {"CPU", CpuInfo("model name") + (virtual_machine ? ", in a virtual machine" : "")},
      {"CPUs", std::to_string(std::thread::hardware_concurrency())},
      {"kernel", std::string(system.sysname) + " " + system.release + " " + system.machine},
      {"hardware counters", access("/sys/bus/event_source/devices/cpu", F_OK) == 0 ? "yes" : "none"},
      {"`perf_event_paranoid`", FirstLine("/proc/sys/kernel/perf_event_paranoid", "not there")},
      {"user", geteuid() == 0 ? "root" : "ordinary"},
      {"frequency governor", FirstLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "not visible")},
      {"compiler", std::string(__VERSION__)},
      {"load average at the end", FirstLine("/proc/loadavg", "unknown")},
  };
}

}  // namespace bench
