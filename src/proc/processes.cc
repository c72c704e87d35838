// Keeps the mappings of each process up to date by its records: MMAP adds a range, FORK copies the parent's, COMM with
// exec clears them, EXIT ends them. If the parent of a FORK is unknown, /proc has its mappings; but those of now, while
// the records are of before. If parent and child have the same image, none of them has called exec since the FORK.
// Otherwise the mappings hold from the time on when they were read, and are unknown before. Samples may arrive
// after the records that follow them, because rings are merged late, so an ended process is kept for a while. Each
// state of a process has an epoch of its own, by which caches of pcs know that they are outdated. Modules are numbered
// once and never removed, since profiles refer to them. A forked child has its parent's modules, except for memory
// without a file: there both may make other code from then on, so it becomes a module of the child at the first lookup.
#include "src/proc/processes.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <vector>

#include "absl/strings/str_format.h"
#include "src/base/text.h"
#include "src/proc/maps.h"
#include "src/proc/stat.h"
#include "src/sys/clock.h"

namespace perfkit::proc {
namespace {

// A bound beyond all real systems. Code in further modules stays unknown.
constexpr size_t kMaxModules = 64 << 10;
// Samples of a process may arrive after its end, from another ring: this many ended ones are kept.
constexpr size_t kMaxDead = 1024;

// Code that a process has made is known to its children, to theirs, and so on, this many times.
constexpr uint32_t kMaxForks = 64;

// What makes two mappings the same module. `life` is 0 for files.
std::string KeyOf(const ModuleId& id) {
  return absl::StrFormat("%s\n%d\n%d\n%d\n%d\n", id.path, id.device, id.inode, id.life, id.uncertain) + id.build_id;
}

int64_t NowNs(clockid_t clock) { return static_cast<int64_t>(sys::ClockNs(clock)); }

// Returns a record's time by the clock of files. Assumes that records have CLOCK_MONOTONIC, the default of samplers.
// Returns 0, which means unknown, for times in the future.
int64_t FileTimeOf(std::optional<uint64_t> time_ns) {
  const int64_t now = NowNs(CLOCK_MONOTONIC);
  if (!time_ns || *time_ns > static_cast<uint64_t>(now)) return 0;
  return NowNs(CLOCK_REALTIME) - (now - static_cast<int64_t>(*time_ns));
}

}  // namespace

Processes::Processes(std::string proc, std::span<const char* const> no_modules) : proc_(std::move(proc)) {
  for (const char* name : no_modules) modules_.push_back({.path = name});
}

bool Processes::Add(const RawRecord& record, const SampleLayout& layout) {
  bool changes = !late_.empty() && InstallUntil(layout.TimeOf(record));
  Dispatch(record, layout,
           Overloaded{[&](const MmapRecord& map) { OnMmap(map), changes = true; },
                      [&](const ForkRecord& fork) {
                        if (fork.pid != fork.parent_pid) OnFork(fork, layout.TimeOf(record)), changes = true;
                      },
                      [&](const ExitRecord& exit) { OnExit(exit); },
                      [&](const CommRecord& comm) {
                        if (comm.exec) OnExec(comm.pid), changes = true;
                      }});
  return changes;
}

// Data that replaces code: the range has no code any more.
void Processes::OnMmap(const MmapRecord& map) {
  if (map.length > UINT64_MAX - map.address) return;
  Process& process = ProcessOf(map.pid);
  Space& space = process.space;
  const uint64_t end = map.address + map.length;
  if (map.data) return space.Unmap(map.address, end);
  std::string build_id(reinterpret_cast<const char*>(map.build_id.data()), map.build_id.size());
  ModuleId id{.path = std::string(map.name),
              .inode = map.inode,
              .build_id = std::move(build_id),
              .pid = static_cast<pid_t>(map.pid),
              .device = ModuleId::DeviceOf(map.device_major, map.device_minor),
              .begin = map.address,
              .end = end};
  const uint32_t module = ModuleOf(std::move(id), process, map.who.time_ns);
  space.Map({map.address, end, modules_[module].OffsetOf(map.address, map.file_offset), module});
}

void Processes::OnExec(uint32_t pid) {
  Process& process = ProcessOf(pid);
  process.space.Clear();
  process.life = process.epoch;
  process.parent = nullptr;
}

// Called for a FORK whose parent is unknown. Reads the parent, or if it has ended, the child.
void Processes::ReadParent(const ForkRecord& fork, std::optional<uint64_t> time_ns) {
  const auto parent = static_cast<pid_t>(fork.parent_pid), child = static_cast<pid_t>(fork.pid);
  const bool is_awaited = std::ranges::count(late_, parent, &LateRead::pid) != 0;
  const absl::StatusOr<LateRead> of_parent = is_awaited ? absl::UnavailableError("") : Read(parent);
  const absl::StatusOr<LateRead> of_child = Read(child);
  const std::optional<Stat> parent_now = ReadStat(parent, proc_), child_now = ReadStat(child, proc_);
  const bool same = parent_now && child_now && parent_now->image == child_now->image;
  const bool is_late = time_ns && !same && *time_ns <= static_cast<uint64_t>(NowNs(CLOCK_MONOTONIC));
  if (!is_late) {
    if (of_parent.ok()) return Install(*of_parent);
    if (of_child.ok()) Install(*of_child);
    return;
  }
  for (const absl::StatusOr<LateRead>* const read : {&of_parent, &of_child}) {
    if (read->ok()) late_.push_back(**read);
  }
}

// A new process has its parent's mappings; a thread has those of its process.
void Processes::OnFork(const ForkRecord& fork, std::optional<uint64_t> time_ns) {
  std::erase_if(late_, [&](const LateRead& late) { return late.pid == static_cast<pid_t>(fork.pid); });
  if (Find(fork.parent_pid) == nullptr) {
    Forget(fork.pid);  // An earlier process had this pid.
    ReadParent(fork, time_ns);
    if (Find(fork.parent_pid) == nullptr && Find(fork.pid) != nullptr) return;
  }
  const Process* const parent = Find(fork.parent_pid);
  Space space = parent == nullptr ? Space() : parent->space;
  std::shared_ptr<const ForkedFrom> from;
  std::vector<MappedRange> made;  // Where code may have been made.
  std::ranges::copy_if(space.ranges(), std::back_inserter(made),
                       [this](const auto& range) { return MayBeMade(range); });
  if (!made.empty()) {
    const uint32_t depth = parent->parent == nullptr ? 1 : parent->parent->depth + 1;
    from = std::make_shared<ForkedFrom>(
        ForkedFrom{static_cast<pid_t>(fork.parent_pid), parent->life, parent->parent, depth});
  }
  if (from != nullptr && from->depth > kMaxForks) {
    from = nullptr;
    for (const MappedRange& range : made) space.Unmap(range.begin, range.end);
  }
  Process& child = ProcessOf(fork.pid);
  child.space = std::move(space);
  child.life = child.epoch;
  child.parent = std::move(from);
}

uint32_t Processes::ModuleIn(uint32_t pid, const Process& process, uint32_t module) {
  const ModuleId& id = modules_[module];
  if (process.parent == nullptr || !id.may_be_made() || id.life == process.life) return module;
  const auto [found, is_new] = inherited_.try_emplace({module, process.life}, module);
  if (!is_new) return found->second;
  return found->second = ModuleOf({.path = id.path, .pid = static_cast<pid_t>(pid)}, process, std::nullopt);
}

// The end of the first thread is not the end of the process, whose other threads may live on. So it is only queued
// here, and forgotten after others.
void Processes::OnExit(const ExitRecord& exit) {
  if (exit.pid != exit.tid) return;
  const Process* const process = Find(exit.pid);
  if (process == nullptr) return;
  dead_.emplace_back(exit.pid, process->epoch);
  if (dead_.size() <= kMaxDead) return;
  const auto [pid, epoch] = dead_.front();
  dead_.pop_front();
  const Process* const oldest = Find(pid);
  if (oldest != nullptr && oldest->epoch == epoch) Forget(pid);
}

void Processes::Forget(uint32_t pid) {
  last_ = nullptr;
  ++changes_;
  processes_.erase(pid);
}

// Returns the process for a change, with a new epoch.
Processes::Process& Processes::ProcessOf(uint32_t pid) {
  Process& process = processes_[pid];
  process.epoch = ++epochs_;
  if (process.life == 0) process.life = process.epoch;
  last_ = nullptr;
  ++changes_;
  return process;
}

const Processes::Process* Processes::Find(uint32_t pid) {
  if (last_ != nullptr && last_pid_ == pid) return last_;
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return nullptr;
  last_pid_ = pid;
  return last_ = &found->second;
}

// `time_ns` is the time of the record. Memory without a file is a module of one process only. A file without build-id
// is another module after each change of it.
uint32_t Processes::ModuleOf(ModuleId id, const Process& process, std::optional<uint64_t> time_ns) {
  if (!id.is_file() && !id.is_vdso()) {
    id.life = process.life;
    id.parent = process.parent;
    id.inode = id.device = 0;
  }
  auto [found, is_new] = module_index_.try_emplace(KeyOf(id), static_cast<uint32_t>(modules_.size()));
  const bool by_time = id.is_file() && id.build_id.empty();
  if (by_time && !is_new) {
    const FileState state = StateSince(id, modules_[found->second].mapped_ns);
    if (state == FileState::kGone) {
      id.uncertain = true;
      std::tie(found, is_new) = module_index_.try_emplace(KeyOf(id), static_cast<uint32_t>(modules_.size()));
    } else if (state == FileState::kChanged) {
      found->second = static_cast<uint32_t>(modules_.size());
      is_new = true;
    }
  }
  if (!is_new) return found->second;
  if (modules_.size() >= kMaxModules) return found->second = 0;
  if (by_time) id.mapped_ns = FileTimeOf(time_ns);
  modules_.push_back(std::move(id));
  return found->second;
}

// Returns how the file of `id`, which is mapped again, looks in comparison with the time when it was mapped first; 0:
// unknown.
FileState Processes::StateSince(ModuleId id, int64_t mapped_ns) const {
  if (mapped_ns == 0) return FileState::kUnchanged;
  id.mapped_ns = mapped_ns;
  return StateOf(id, proc_);
}

absl::StatusOr<Processes::LateRead> Processes::Read(pid_t pid) const {
  LateRead read{.pid = pid, .time_ns = static_cast<uint64_t>(NowNs(CLOCK_MONOTONIC)), .maps = {}, .build_ids = {}};
  absl::StatusOr<std::string> maps = ReadMaps(pid, proc_);
  if (!maps.ok()) return maps.status();
  read.maps = *std::move(maps);
  base::ForEachPiece(read.maps, '\n', [&](std::string_view line) {
    const std::optional<MapLine> map = ParseMapLine(line);
    if (map && map->executable) read.build_ids.push_back(ReadBuildId(ModuleId::Of(*map, pid), proc_));
  });
  return read;
}

void Processes::Install(const LateRead& late) {
  Process& process = ProcessOf(static_cast<uint32_t>(late.pid));
  process.space.Clear();
  size_t i = 0;
  base::ForEachPiece(late.maps, '\n', [&](std::string_view line) {
    const std::optional<MapLine> map = ParseMapLine(line);
    if (!map || !map->executable) return;
    ModuleId id = ModuleId::Of(*map, late.pid);
    id.build_id = late.build_ids[i++];
    if (!id.build_id.empty()) id.inode = id.device = 0;  // As in records of the kernel, which have one or the other.
    const uint32_t module = ModuleOf(std::move(id), process, late.time_ns);
    process.space.Map({map->begin, map->end, modules_[module].OffsetOf(map->begin, map->file_offset), module});
  });
}

// Installs what was read up to a time; nullopt: all. Returns true if there was something.
bool Processes::InstallUntil(std::optional<uint64_t> time_ns) {
  const auto is_later = [&](const LateRead& late) { return time_ns && late.time_ns > *time_ns; };
  const auto end = std::ranges::find_if(late_, is_later);
  for (auto late = late_.begin(); late != end; ++late) Install(*late);
  const bool any = end != late_.begin();
  late_.erase(late_.begin(), end);
  return any;
}

absl::Status Processes::AddProcess(pid_t pid) {
  const absl::StatusOr<LateRead> read = Read(pid);
  if (!read.ok()) return read.status();
  std::erase_if(late_, [pid](const LateRead& late) { return late.pid == pid; });
  Install(*read);
  return absl::OkStatus();
}

}  // namespace perfkit::proc
