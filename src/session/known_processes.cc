// Side-band records say which processes' mappings are complete. A forked child shares its parent's mappings without
// records of its own, so it is known if its parent is.
#include "src/session/known_processes.h"

#include "src/proc/threads.h"

namespace perfkit::session {

void KnownProcesses::Forked(const ForkRecord& fork, bool synthesized) {
  if (synthesized) return Know(fork.pid);
  if (fork.pid == fork.parent_pid) return;
  known_.erase(fork.pid);  // an earlier process had this pid
  if (known_.contains(fork.parent_pid)) Know(fork.pid);
}

uint32_t MappedProcess(const RawRecord& record, const SampleLayout& layout) {
  uint32_t pid = 0;
  Dispatch(record, layout,
           Overloaded{[&](const MmapRecord& map) { pid = map.pid; }, [&](const ForkRecord& fork) { pid = fork.pid; },
                      [&](const CommRecord& comm) { pid = comm.pid; }, [](auto&&) {}});
  return pid;
}

// The idle threads of all CPUs have tid 0 (INIT_TASK_COMM, include/linux/init_task.h).
std::string FindName(uint32_t pid, uint32_t tid) {
  if (tid == 0) return "swapper";
  return proc::ThreadName(static_cast<pid_t>(pid), static_cast<pid_t>(tid)).value_or("");
}

}  // namespace perfkit::session
