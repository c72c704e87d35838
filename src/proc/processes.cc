// Takes records: each changes what one process has mapped.
#include "src/proc/processes.h"

#include "absl/strings/str_format.h"
#include "src/base/text.h"
#include "src/proc/maps.h"

namespace perfkit::proc {
namespace {

// More than any system runs; then pcs in further ones stay unknown.
constexpr size_t kMostModules = 64 << 10;
// Samples of a process may come after its end, from another ring: so many of the dead are remembered.
constexpr size_t kMostDead = 1024;

std::string KeyOf(const ModuleId& id) { return absl::StrFormat("%s\n%d\n", id.path, id.inode) + id.build_id; }

}  // namespace

Processes::Processes(std::string proc, std::span<const char* const> no_modules) : proc_(std::move(proc)) {
  for (const char* name : no_modules) modules_.push_back({name, 0, "", 0});
}

bool Processes::Add(const RawRecord& record, const SampleLayout& layout) {
  bool changes = false;
  Dispatch(record, layout,
           Overloaded{[&](const MmapRecord& map) { OnMmap(map), changes = true; },
                      [&](const ForkRecord& fork) { OnFork(fork), changes = fork.pid != fork.parent_pid; },
                      [&](const ExitRecord& exit) { OnExit(exit); },
                      [&](const CommRecord& comm) {
                        if (comm.exec) ProcessOf(comm.pid).space.Clear(), changes = true;
                      }});
  return changes;
}

// Data over what was code: no code is there any more.
void Processes::OnMmap(const MmapRecord& map) {
  if (map.length > UINT64_MAX - map.address) return;
  Space& space = ProcessOf(map.pid).space;
  const uint64_t end = map.address + map.length;
  if (map.data) return space.Unmap(map.address, end);
  std::string build_id(reinterpret_cast<const char*>(map.build_id.data()), map.build_id.size());
  const uint32_t module =
      ModuleOf({std::string(map.name), map.inode, std::move(build_id), static_cast<pid_t>(map.pid)});
  space.Map({map.address, end, modules_[module].OffsetOf(map.address, map.file_offset), module});
}

// A new process has what its parent had; a thread has what its process has.
void Processes::OnFork(const ForkRecord& fork) {
  if (fork.pid == fork.parent_pid) return;
  const Process* const parent = Find(fork.parent_pid);
  const Space space = parent == nullptr ? Space() : parent->space;
  ProcessOf(fork.pid).space = space;
}

// Its first thread's end is not yet the process's, whose other threads may live on: it is forgotten after others.
void Processes::OnExit(const ExitRecord& exit) {
  if (exit.pid != exit.tid) return;
  const Process* const process = Find(exit.pid);
  if (process == nullptr) return;
  dead_.emplace_back(exit.pid, process->epoch);
  if (dead_.size() <= kMostDead) return;
  const auto [pid, epoch] = dead_.front();
  dead_.pop_front();
  const Process* const oldest = Find(pid);
  if (oldest != nullptr && oldest->epoch == epoch) Forget(pid);
}

void Processes::Forget(uint32_t pid) {
  last_ = nullptr;
  processes_.erase(pid);
}

// To be changed, which makes what was remembered of it void.
Processes::Process& Processes::ProcessOf(uint32_t pid) {
  Process& process = processes_[pid];
  process.epoch = ++epochs_;
  last_ = nullptr;
  return process;
}

const Processes::Process* Processes::Find(uint32_t pid) {
  if (last_ != nullptr && last_pid_ == pid) return last_;
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return nullptr;
  last_pid_ = pid;
  return last_ = &found->second;
}

uint32_t Processes::ModuleOf(ModuleId id) {
  const auto [found, is_new] = module_index_.try_emplace(KeyOf(id), static_cast<uint32_t>(modules_.size()));
  if (!is_new) return found->second;
  if (modules_.size() >= kMostModules) return found->second = 0;
  modules_.push_back(std::move(id));
  return found->second;
}

absl::Status Processes::AddProcess(pid_t pid) {
  const absl::StatusOr<std::string> maps = ReadMaps(pid, proc_);
  if (!maps.ok()) return maps.status();
  Space& space = ProcessOf(static_cast<uint32_t>(pid)).space;
  space.Clear();
  base::ForEachPiece(*maps, '\n', [&](std::string_view line) {
    const std::optional<MapLine> map = ParseMapLine(line);
    if (!map || !map->executable) return;
    const std::string_view path = map->path.empty() ? "//anon" : map->path;
    const uint32_t module = ModuleOf({std::string(path), map->inode, "", pid});
    space.Map({map->begin, map->end, modules_[module].OffsetOf(map->begin, map->file_offset), module});
  });
  return absl::OkStatus();
}

}  // namespace perfkit::proc
