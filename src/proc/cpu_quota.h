// The CPU quotas of this process's control groups (cgroups), and for how long these kept threads off their CPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perfkit::proc {

// Returns the folders of the groups that may have a quota for a process, the innermost first: in cgroup v2, and in the
// hierarchy of v1 that has the controller "cpu". Groups outside of what is mounted are left out. `cgroup`: the text of
// /proc/PID/cgroup (cgroups(7)). `mountinfo`: that of /proc/PID/mountinfo (proc(5)).
std::vector<std::string> ParseCpuGroups(std::string_view cgroup, std::string_view mountinfo);

// Returns the folders of this process's groups that have a quota now: cpu.max (v2) or cpu.cfs_quota_us (v1).
std::vector<std::string> CpuQuotaGroups();

// Returns the throttled time in a cpu.stat file, in nanoseconds: the line "throttled_usec 12" (v2), or
// "throttled_time 12000" (v1). nullopt if there is none.
std::optional<uint64_t> ParseThrottledNs(std::string_view cpu_stat);

// Returns for how long a group's quota kept its threads off their CPUs, as a sum over CPUs. The kernel adds the time of
// a CPU when its threads may run again (unthrottle_cfs_rq in kernel/sched/fair.c). nullopt if it can't be read.
std::optional<uint64_t> ReadThrottledNs(const std::string& group);

}  // namespace perfkit::proc
