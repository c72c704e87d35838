// Parses the records other than samples: fixed fields, then a text or a list, then the trailer (sample_id_all). Reads
// field by field, so that the structs need not have the kernel's layout and padding. A record that is too short for its
// fields gives nullopt, never a struct that is half filled. Layouts: enum perf_event_type in
// include/uapi/linux/perf_event.h.
#include "perfkit/record.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "src/ring/record_fields.h"

namespace perfkit {
namespace {

using ring::Finish;
using ring::Is;
using ring::RecordFields;

// By PERF_RECORD_*, whose numbers begin at 1.
constexpr std::string_view kNames[] = {
    "",
    "MMAP",
    "LOST",
    "COMM",
    "EXIT",
    "THROTTLE",
    "UNTHROTTLE",
    "FORK",
    "READ",
    "SAMPLE",
    "MMAP2",
    "AUX",
    "ITRACE_START",
    "LOST_SAMPLES",
    "SWITCH",
    "SWITCH_CPU_WIDE",
    "NAMESPACES",
    "KSYMBOL",
    "BPF_EVENT",
    "CGROUP",
    "TEXT_POKE",
    "AUX_OUTPUT_HW_ID",
    "CALLCHAIN_DEFERRED",
};

// MMAP2 identifies the mapped file in one of two ways, in the same 24 bytes.
void TakeFileIdentity(RecordFields& fields, bool by_build_id, MmapRecord& map) {
  if (!by_build_id) {
    fields.TakeAll(map.device_major, map.device_minor, map.inode, map.inode_generation);
    return;
  }
  // A byte for the size, three that are reserved, 20 for the build ID. The size is the kernel's word, hence the min.
  constexpr uint8_t kRoom = 20;
  uint8_t size = 0;
  std::array<uint8_t, 3> reserved{};
  Bytes room;
  fields.TakeAll(size, reserved);
  fields.TakeBytes(room, kRoom);
  if (fields.ok()) map.build_id = room.first(std::min(size, kRoom));
}

template <class Record>
std::optional<Record> ParseTask(RecordType type, const RawRecord& record, const SampleLayout& layout) {
  if (!Is(record, type)) return std::nullopt;
  Record task;
  RecordFields fields(record, layout);
  fields.TakeAll(task.pid, task.parent_pid, task.tid, task.parent_tid, task.time_ns);
  return Finish(task, fields, record, layout);
}

}  // namespace

std::string_view RecordTypeName(uint32_t type) noexcept { return type < std::size(kNames) ? kNames[type] : ""; }

std::optional<MmapRecord> MmapRecord::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  MmapRecord map;
  map.mmap2 = Is(record, RecordType::kMmap2);
  if (!map.mmap2 && !Is(record, RecordType::kMmap)) return std::nullopt;
  map.data = (record.misc & kMiscMmapData) != 0;
  RecordFields fields(record, layout);
  fields.TakeAll(map.pid, map.tid, map.address, map.length, map.file_offset);
  if (map.mmap2) {
    TakeFileIdentity(fields, (record.misc & kMiscMmapBuildId) != 0, map);
    fields.TakeAll(map.protection, map.flags);
  }
  fields.TakeText(map.name);
  return Finish(map, fields, record, layout);
}

std::optional<LostRecord> LostRecord::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  if (!Is(record, RecordType::kLost)) return std::nullopt;
  LostRecord lost;
  RecordFields fields(record, layout);
  fields.TakeAll(lost.id, lost.lost);
  return Finish(lost, fields, record, layout);
}

std::optional<LostSamplesRecord> LostSamplesRecord::Parse(const RawRecord& record,
                                                          const SampleLayout& layout) noexcept {
  if (!Is(record, RecordType::kLostSamples)) return std::nullopt;
  LostSamplesRecord lost;
  RecordFields fields(record, layout);
  fields.Take(lost.lost);
  return Finish(lost, fields, record, layout);
}

std::optional<CommRecord> CommRecord::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  if (!Is(record, RecordType::kComm)) return std::nullopt;
  CommRecord comm;
  comm.exec = (record.misc & kMiscCommExec) != 0;
  RecordFields fields(record, layout);
  fields.TakeAll(comm.pid, comm.tid);
  fields.TakeText(comm.name);
  return Finish(comm, fields, record, layout);
}

std::optional<ForkRecord> ForkRecord::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  return ParseTask<ForkRecord>(RecordType::kFork, record, layout);
}

std::optional<ExitRecord> ExitRecord::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  return ParseTask<ExitRecord>(RecordType::kExit, record, layout);
}

std::optional<ThrottleRecord> ThrottleRecord::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  ThrottleRecord throttle;
  throttle.throttled = Is(record, RecordType::kThrottle);
  if (!throttle.throttled && !Is(record, RecordType::kUnthrottle)) return std::nullopt;
  RecordFields fields(record, layout);
  fields.TakeAll(throttle.time_ns, throttle.id, throttle.stream_id);
  return Finish(throttle, fields, record, layout);
}

std::optional<SwitchRecord> SwitchRecord::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  const bool wide = Is(record, RecordType::kSwitchCpuWide);
  if (!wide && !Is(record, RecordType::kSwitch)) return std::nullopt;
  SwitchRecord change;
  change.out = (record.misc & kMiscSwitchOut) != 0;
  change.preempted = change.out && (record.misc & kMiscSwitchPreempted) != 0;
  RecordFields fields(record, layout);
  if (wide) {
    uint32_t pid = 0, tid = 0;
    fields.TakeAll(pid, tid);
    change.other_pid = pid;
    change.other_tid = tid;
  }
  return Finish(change, fields, record, layout);
}

std::optional<ReadRecord> ReadRecord::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  if (!Is(record, RecordType::kRead)) return std::nullopt;
  ReadRecord read;
  RecordFields fields(record, layout);
  fields.TakeAll(read.pid, read.tid);
  // The words left may include the trailer; the format says how many belong to the values.
  const std::optional<ReadValues> values = ReadValues::Parse(fields.LeftWords(), layout.bits().read_format);
  if (!values) return std::nullopt;
  read.values = *values;
  return Finish(read, fields, record, layout);
}

}  // namespace perfkit
