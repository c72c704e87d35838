// All switches of one CPU, as the kernel's tracepoint has them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/raw_tracepoint.h"

namespace perfkit::session {

struct RawSwitch {
  uint64_t time_ns = 0;
  int from_pid = 0;  // the process of `from`; -1 if it has ended
  int from = 0, to = 0;
  std::string to_name;
};

class RawSwitches {
 public:
  explicit RawSwitches(int cpu) : tracepoint_("sched/sched_switch", -1, cpu, 8 << 20) {}

  // Returns false if that is not permitted.
  bool is_open() const { return tracepoint_.is_open() && from_ != 0 && to_ != 0 && name_ != 0; }
  bool has_lost() const { return has_lost_; }

  // Stops, and returns what the ring holds.
  std::vector<RawSwitch> Stop() {
    std::vector<RawSwitch> switches;
    has_lost_ = !tracepoint_.Stop([&](const testing::RawTracepoint::Hit& hit) {
      const char* const name = hit.raw + name_;
      switches.push_back({hit.time_ns, hit.pid, hit.At<int>(from_), hit.At<int>(to_), {name, strnlen(name, 16)}});
    });
    return switches;
  }

 private:
  const testing::RawTracepoint tracepoint_;
  const size_t from_ = tracepoint_.OffsetOf("prev_pid"), to_ = tracepoint_.OffsetOf("next_pid");
  const size_t name_ = tracepoint_.OffsetOf("next_comm[16]");
  bool has_lost_ = false;
};

}  // namespace perfkit::session
