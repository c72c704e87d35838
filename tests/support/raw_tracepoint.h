// A tracepoint, read by system calls alone and parsed by its format file: independent of what is tested.
#pragma once

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

namespace perfkit::testing {

class RawTracepoint {
 public:
  // Records it from now on, of a thread (0: the calling one; -1: all) on a CPU (-1: all): "sched/sched_switch". The
  // kernel writes no further once the ring of `bytes` is full. is_open() is false if that is not permitted.
  RawTracepoint(const std::string& name, pid_t tid, int cpu, size_t bytes)
      : folder_("/sys/kernel/tracing/events/" + name), bytes_(bytes) {
    uint64_t id = 0;
    std::ifstream(folder_ + "/id") >> id;
    if (id == 0) return;
    perf_event_attr attr{};
    attr.type = PERF_TYPE_TRACEPOINT, attr.size = sizeof(attr), attr.config = id;
    attr.sample_period = 1, attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
    attr.use_clockid = 1, attr.clockid = CLOCK_MONOTONIC;
    file_ = static_cast<int>(syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC));
    if (file_ < 0) return;
    void* const ring = mmap(nullptr, kPage + bytes_, PROT_READ, MAP_SHARED, file_, 0);
    if (ring != MAP_FAILED) ring_ = static_cast<const char*>(ring);
  }
  ~RawTracepoint() {
    if (ring_ != nullptr) munmap(const_cast<char*>(ring_), kPage + bytes_);
    if (file_ >= 0) close(file_);
  }
  RawTracepoint(const RawTracepoint&) = delete;
  RawTracepoint& operator=(const RawTracepoint&) = delete;

  bool is_open() const { return ring_ != nullptr; }
  // Returns the offset of a field in the raw data, 0 if there is none: "next_pid", "next_comm[16]". A line of the
  // format file is "	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;".
  size_t OffsetOf(const std::string& field) const {
    std::ifstream file(folder_ + "/format");
    for (std::string line; std::getline(file, line);) {
      const size_t offset = line.find("offset:");
      if (offset != std::string::npos && line.find(" " + field + ";") != std::string::npos)
        return std::stoul(line.substr(offset + strlen("offset:")));
    }
    return 0;
  }

  struct Hit {
    int pid = 0;  // The process of the thread that ran; -1 if it has ended.
    uint64_t time_ns = 0;
    const char* raw = nullptr;

    template <class T>
    T At(size_t offset) const {
      T value;
      memcpy(&value, raw + offset, sizeof(value));
      return value;
    }
  };

  // Stops, and calls `visit` for each hit that the ring holds. Returns false if there were more.
  template <class Visit>
  bool Stop(Visit&& visit) const {
    constexpr uint64_t kMaxRecord = 1 << 16;
    ioctl(file_, PERF_EVENT_IOC_DISABLE, 0);
    const auto* const page = reinterpret_cast<const perf_event_mmap_page*>(ring_);
    const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    for (uint64_t at = 0; at < head;) {
      perf_event_header header;
      memcpy(&header, ring_ + kPage + at, sizeof(header));
      if (header.size == 0) break;
      const char* const body = ring_ + kPage + at + sizeof(header);
      at += header.size;
      if (header.type != PERF_RECORD_SAMPLE) continue;
      Hit hit;
      memcpy(&hit.pid, body, sizeof(hit.pid));
      memcpy(&hit.time_ns, body + sizeof(uint64_t), sizeof(hit.time_ns));
      hit.raw = body + 2 * sizeof(uint64_t) + sizeof(uint32_t);
      visit(hit);
    }
    // PERF_RECORD_LOST is written only once there is room again, and no reader makes room.
    return head + kMaxRecord <= bytes_;
  }

 private:
  static constexpr size_t kPage = 4096;

  const std::string folder_;
  const size_t bytes_;
  int file_ = -1;
  const char* ring_ = nullptr;
};

}  // namespace perfkit::testing
