// All switches of one CPU, read by system calls alone and parsed by the format file: independent of what is tested.
#pragma once

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace perfkit::session {

struct RawSwitch {
  uint64_t time_ns = 0;
  int from_pid = 0;  // the process of `from`; -1 if it has ended
  int from = 0, to = 0;
  std::string to_name;
};

class RawSwitches {
 public:
  // is_open() is false if that is not permitted.
  explicit RawSwitches(int cpu) {
    const std::string folder = "/sys/kernel/tracing/events/sched/sched_switch/";
    std::ifstream(folder + "id") >> id_;
    ReadFormat(folder + "format");
    if (id_ == 0 || from_ == 0 || to_ == 0 || name_ == 0) return;
    perf_event_attr attr{};
    attr.type = PERF_TYPE_TRACEPOINT, attr.size = sizeof(attr), attr.config = id_;
    attr.sample_period = 1, attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
    attr.use_clockid = 1, attr.clockid = CLOCK_MONOTONIC;
    fd_ = static_cast<int>(syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC));
    if (fd_ < 0) return;
    void* const ring = mmap(nullptr, kPage + kBytes, PROT_READ, MAP_SHARED, fd_, 0);
    if (ring != MAP_FAILED) ring_ = static_cast<const char*>(ring);
  }
  ~RawSwitches() {
    if (ring_ != nullptr) munmap(const_cast<char*>(ring_), kPage + kBytes);
    if (fd_ >= 0) close(fd_);
  }
  RawSwitches(const RawSwitches&) = delete;
  RawSwitches& operator=(const RawSwitches&) = delete;

  bool is_open() const { return ring_ != nullptr; }
  bool has_lost() const { return has_lost_; }

  // Stops, and returns what the ring holds. The kernel writes no further once it is full: then has_lost() is true.
  std::vector<RawSwitch> Stop() {
    ioctl(fd_, PERF_EVENT_IOC_DISABLE, 0);
    const auto* const page = reinterpret_cast<const perf_event_mmap_page*>(ring_);
    const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    std::vector<RawSwitch> switches;
    for (uint64_t at = 0; at < head;) {
      perf_event_header header;
      memcpy(&header, ring_ + kPage + at, sizeof(header));
      if (header.size == 0) break;
      if (header.type == PERF_RECORD_SAMPLE) switches.push_back(Parse(ring_ + kPage + at + sizeof(header)));
      at += header.size;
    }
    // PERF_RECORD_LOST is written only once there is room again, and no reader makes room.
    has_lost_ = head + kMaxRecord > kBytes;
    return switches;
  }

 private:
  static constexpr size_t kPage = 4096, kBytes = 8 << 20, kMaxRecord = 1 << 16;

  // "	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;"
  void ReadFormat(const std::string& path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      const size_t offset = line.find("offset:");
      if (offset == std::string::npos) continue;
      const size_t value = std::stoul(line.substr(offset + strlen("offset:")));
      if (line.find(" prev_pid;") != std::string::npos) from_ = value;
      if (line.find(" next_pid;") != std::string::npos) to_ = value;
      if (line.find(" next_comm[") != std::string::npos) name_ = value;
    }
  }

  RawSwitch Parse(const char* body) const {
    const char* const raw = body + 2 * sizeof(uint64_t) + sizeof(uint32_t);
    RawSwitch parsed;
    memcpy(&parsed.from_pid, body, sizeof(parsed.from_pid));
    memcpy(&parsed.time_ns, body + sizeof(uint64_t), sizeof(parsed.time_ns));
    memcpy(&parsed.from, raw + from_, sizeof(parsed.from));
    memcpy(&parsed.to, raw + to_, sizeof(parsed.to));
    parsed.to_name.assign(raw + name_, strnlen(raw + name_, 16));
    return parsed;
  }

  uint64_t id_ = 0;
  size_t from_ = 0, to_ = 0, name_ = 0;
  int fd_ = -1;
  const char* ring_ = nullptr;
  bool has_lost_ = false;
};

}  // namespace perfkit::session
