// Writes records in the kernel's layout (include/uapi/linux/perf_event.h, enum perf_event_type) from the files in
// /proc: task and comm for the threads, maps for the mappings. The records have id 0, which distinguishes them from the
// kernel's. As the kernel does without mmap_data, only executable mappings are written.
//
// For whole CPUs there may be thousands of processes, which map the same few files: the build-id of each file is read
// once. The constructor reads processes up to a limit of time and memory; ReadMore reads the others.
#include "src/sample/synthesis.h"

#include <array>
#include <cstring>

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/open/task_cpu.h"
#include "src/proc/cgroups.h"
#include "src/proc/descendants.h"
#include "src/proc/maps.h"
#include "src/proc/module_file.h"
#include "src/proc/stat.h"
#include "src/proc/threads.h"
#include "src/sys/clock.h"
#include "src/sys/files.h"
#include "src/sys/kernel.h"
#include "src/sys/mapping.h"

namespace perfkit::sample {
namespace {

// Appends records to `out`: Begin starts one, Put fills it, and End adds its trailer and its size.
class RecordWriter {
 public:
  RecordWriter(std::vector<std::byte>& out, const SampleLayout& layout, uint64_t time_ns)
      : out_(out), layout_(layout), time_ns_(time_ns) {}

  void Begin(RecordType type, uint16_t misc) {
    begin_ = out_.size();
    Put(static_cast<uint32_t>(type));
    Put(misc);
    Put(uint16_t{0});  // The size, which End sets.
  }
  template <class T>
  void Put(T value) {
    const size_t at = out_.size();
    out_.resize(at + sizeof(T));
    std::memcpy(out_.data() + at, &value, sizeof(T));
  }
  // Puts a text with its NUL, padded to a word.
  void PutText(std::string_view text) {
    const size_t at = out_.size();
    // New bytes are 0: the NUL, and the padding after it. At least one byte is added.
    out_.resize(at + (text.size() + 8) / 8 * 8);
    std::memcpy(out_.data() + at, text.data(), text.size());
  }
  void End(uint32_t pid, uint32_t tid) {
    for (const Field field :
         {Field::kTid, Field::kTime, Field::kId, Field::kStreamId, Field::kCpu, Field::kIdentifier}) {
      if (!layout_.has(field)) continue;
      const uint64_t task = uint64_t{tid} << 32 | pid;
      Put(field == Field::kTid ? task : field == Field::kTime ? time_ns_ : uint64_t{0});
    }
    const auto size = static_cast<uint16_t>(out_.size() - begin_);
    std::memcpy(out_.data() + begin_ + 6, &size, sizeof(size));
  }

 private:
  std::vector<std::byte>& out_;
  const SampleLayout& layout_;
  uint64_t time_ns_;
  size_t begin_ = 0;
};

constexpr uint16_t kUserMode = static_cast<uint16_t>(CpuMode::kUser);
constexpr size_t kLongestPath = 4096;
// The limits of the constructor.
constexpr uint64_t kMaxAheadNs = 500'000'000;
constexpr size_t kMaxAheadBytes = 16 << 20;
// The limit of ReadMore.
constexpr uint64_t kMaxMoreNs = 100'000'000;
// A bound beyond all real systems.
constexpr size_t kMaxCgroups = 64 << 10;

// Returns the process of a thread, from its status file; `tid` if it can't be read.
pid_t ProcessOf(pid_t tid) {
  const absl::StatusOr<std::string> text = sys::ReadFile(absl::StrFormat("/proc/%d/status", tid));
  pid_t pid = tid;
  if (!text.ok()) return pid;
  base::ForEachPiece(*text, '\n', [&](std::string_view line) {
    const auto [key, value] = base::Cut(line, ':');
    if (key == "Tgid") pid = base::ParseNumber<pid_t>(base::Trim(value)).value_or(tid);
  });
  return pid;
}

void WriteThread(RecordWriter& writer, uint32_t pid, uint32_t tid, uint64_t time_ns) {
  writer.Begin(RecordType::kFork, kUserMode);
  for (const uint32_t id : {pid, pid, tid, pid}) writer.Put(id);  // pid, parent pid, tid, parent tid.
  writer.Put(time_ns);
  writer.End(pid, tid);
  const absl::StatusOr<std::string> name = proc::ThreadName(static_cast<pid_t>(pid), static_cast<pid_t>(tid));
  if (!name.ok()) return;
  writer.Begin(RecordType::kComm, kUserMode);
  writer.Put(pid);
  writer.Put(tid);
  writer.PutText(*name);
  writer.End(pid, tid);
}

// Puts the identity of a mapped file: its build-id, as the kernel does with attr.build_id, or device and inode.
void PutFileIdentity(RecordWriter& writer, const proc::MapLine& map, const std::string& build_id) {
  if (!build_id.empty()) {
    std::array<uint8_t, 24> room{static_cast<uint8_t>(build_id.size())};
    std::memcpy(&room[4], build_id.data(), build_id.size());
    return writer.Put(room);
  }
  writer.Put(map.device_major);
  writer.Put(map.device_minor);
  writer.Put(map.inode);
  writer.Put(uint64_t{0});  // The generation, which is not known.
}

// Returns the file's build-id, which is read for its first mapping only.
const std::string& BuildIdOf(const proc::MapLine& map, uint32_t pid, BuildIds& build_ids) {
  const std::string key =
      absl::StrFormat("%x:%x %d %s", map.device_major, map.device_minor, map.inode, std::string(map.path));
  const auto [found, is_new] = build_ids.try_emplace(key);
  if (!is_new) return found->second;
  constexpr size_t kLongestBuildId = 20;
  std::string build_id = proc::ReadBuildId(proc::ModuleId::Of(map, static_cast<pid_t>(pid)), "/proc");
  if (build_id.size() <= kLongestBuildId) found->second = std::move(build_id);
  return found->second;
}

// Ignores mappings that are not executable, as the kernel does without mmap_data.
void WriteMap(RecordWriter& writer, uint32_t pid, const proc::MapLine& map, BuildIds& build_ids) {
  if (!map.executable || map.path.size() > kLongestPath) return;
  const std::string& build_id = BuildIdOf(map, pid, build_ids);
  writer.Begin(RecordType::kMmap2, build_id.empty() ? kUserMode : kUserMode | kMiscMmapBuildId);
  writer.Put(pid);
  writer.Put(pid);
  for (const uint64_t word : {map.begin, map.end - map.begin, map.file_offset}) writer.Put(word);
  PutFileIdentity(writer, map, build_id);
  int protection = PROT_EXEC;
  if (map.readable) protection |= PROT_READ;
  if (map.writable) protection |= PROT_WRITE;
  writer.Put(static_cast<uint32_t>(protection));
  writer.Put(static_cast<uint32_t>(map.shared ? MAP_SHARED : MAP_PRIVATE));
  writer.PutText(map.path.empty() ? "//anon" : map.path);
  writer.End(pid, pid);
}

void WriteCgroup(RecordWriter& writer, const proc::Cgroup& cgroup) {
  if (cgroup.path.size() > kLongestPath) return;
  writer.Begin(RecordType::kCgroup, kUserMode);
  writer.Put(cgroup.number);
  writer.PutText(cgroup.path);
  writer.End(0, 0);
}

// Returns the processes of the target: for whole CPUs all that procfs shows.
std::vector<pid_t> ProcessesOf(const Plan& plan) {
  const Target& target = plan.target();
  if (plan.whole_cpus()) {
    const absl::StatusOr<std::vector<std::string>> names = sys::ListFolder("/proc");
    return names.ok() ? proc::ParseTaskNames(*names) : std::vector<pid_t>();
  }
  if (target.kind != Target::Kind::kProcess && target.kind != Target::Kind::kThread) return {sys::kernel().getpid()};
  std::vector<pid_t> pids = {target.kind == Target::Kind::kProcess ? target.id : ProcessOf(target.id)};
  // Children that were forked since Open, or while the sampler was stopped, have inherited the events.
  if (!plan.inherits()) return pids;
  const std::vector<pid_t> descendants = proc::ListDescendants(pids.front());
  pids.insert(pids.end(), descendants.begin(), descendants.end());
  return pids;
}

}  // namespace

SynthesizedRecords::SynthesizedRecords(const Plan& plan, uint64_t time_ns)
    : layout_(plan.layout()), clock_(plan.options().clock_id), pids_(ProcessesOf(plan)) {
  const uint64_t begun = sys::ClockNs(CLOCK_MONOTONIC);
  if (layout_.has(Field::kCgroup)) {
    RecordWriter writer(records_, layout_, time_ns);
    for (const proc::Cgroup& cgroup : proc::ListCgroups(kMaxCgroups)) WriteCgroup(writer, cgroup);
  }
  while (next_pid_ < pids_.size() && records_.size() < kMaxAheadBytes) {
    ReadProcess(pids_[next_pid_++], time_ns);
    if (sys::ClockNs(CLOCK_MONOTONIC) - begun > kMaxAheadNs) break;
  }
  EndBlock(time_ns);
}

void SynthesizedRecords::ReadProcess(pid_t pid, uint64_t time_ns, bool maps) {
  const auto number = static_cast<uint32_t>(pid);
  RecordWriter writer(records_, layout_, time_ns);
  const absl::StatusOr<std::vector<pid_t>> threads = proc::ListThreads(pid);
  if (!threads.ok()) {
    ++unread_;
    return;
  }
  for (const pid_t tid : *threads) WriteThread(writer, number, static_cast<uint32_t>(tid), time_ns);
  const absl::StatusOr<std::string> text = maps ? proc::ReadMaps(pid) : absl::UnavailableError("");
  if (!text.ok()) {
    ++unread_;
    return;
  }
  base::ForEachPiece(*text, '\n', [&](std::string_view line) {
    if (const std::optional<proc::MapLine> map = proc::ParseMapLine(line)) WriteMap(writer, number, *map, build_ids_);
  });
}

// Samples are taken meanwhile. If the process has called exec between the time of the records and the reading, it is
// read once more; if it does so again, its mappings are not known.
void SynthesizedRecords::ReadLate(pid_t pid) {
  const size_t records = records_.size();
  const uint64_t unread = unread_;
  for (const bool maps : {true, true, false}) {
    const std::optional<proc::Stat> before = proc::ReadStat(pid);
    const uint64_t now = sys::ClockNs(clock_);
    ReadProcess(pid, now, maps);
    if (!maps || proc::ReadStat(pid) == before) return EndBlock(now);
    records_.resize(records);
    unread_ = unread;
  }
}

void SynthesizedRecords::ReadMore() {
  if (has_next() || pids_.empty()) return;
  Release();
  late_ = true;
  const uint64_t begun = sys::ClockNs(CLOCK_MONOTONIC);
  while (next_pid_ < pids_.size() && records_.size() < kMaxAheadBytes) {
    ReadLate(pids_[next_pid_++]);
    if (sys::ClockNs(CLOCK_MONOTONIC) - begun > kMaxMoreNs) return;
  }
  if (next_pid_ == pids_.size()) Close();
}

std::optional<RawRecord> SynthesizedRecords::Next() {
  if (!has_next()) {
    Release();
    return std::nullopt;
  }
  if (given_ == blocks_[block_].end) {
    ++block_;
    return std::nullopt;
  }
  LinearReader reader(Bytes(records_).subspan(given_));
  RawRecord raw;
  if (!reader.Next(raw)) return std::nullopt;
  given_ += raw.size;
  return raw;
}

void SynthesizedRecords::Close() {
  unread_ += pids_.size() - next_pid_;
  next_pid_ = 0;
  pids_ = {};
  build_ids_ = {};
}

void SynthesizedRecords::Release() {
  records_ = {};
  blocks_ = {};
  given_ = block_ = 0;
}

}  // namespace perfkit::sample
