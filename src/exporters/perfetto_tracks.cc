// Tracks of a Perfetto trace: processes, threads, zones, tasks, waits, counters. Slices are written track by track,
// each in the order of time, and readers sort the tracks together. Begin and end pair by nesting, so a slice that
// overlaps another one of its kind gets a track of its own, which viewers lay out below the first.
#include "src/exporters/perfetto_tracks.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/base/utf8.h"
#include "src/exporters/accounting_text.h"
#include "src/exporters/frame_gaps.h"
#include "src/profile/faulted_memory.h"
#include "src/profile/part_text.h"
#include "src/profile/wait_text.h"

namespace perfkit::exporters::perfetto {
namespace {

void AddText(pbf_writer& event, std::string_view name, std::string_view text) {
  pbf_writer entry(event, event::kDebugAnnotations);
  entry.add_string(annotation::kName, std::string(name));
  entry.add_string(annotation::kStringValue, base::ValidUtf8(text));
}

uint32_t UnitOf(ProfileUnit unit) {
  if (unit == ProfileUnit::kNanoseconds) return counter::kUnitTimeNs;
  return unit == ProfileUnit::kBytes ? counter::kUnitSizeBytes : counter::kUnitCount;
}

}  // namespace

TrackWriter::TrackWriter(const Profile& profile, PacketWriter& packets, const profile::FrameCut* cut)
    : profile_(profile), packets_(packets), cut_(cut) {}

void TrackWriter::Write() {
  packets_.Begin(
      kTrackSequence, [](pbf_writer&) {}, [](pbf_writer&) {});
  WriteProcesses();
  WriteThreads();
  WriteAccounting();
  WriteArrows();
  WriteSlices();
  WriteTasks();
  for (const ProfileCounter& counter : profile_.counters) WriteCounter(counter);
}

// The program's name is that of the first thread's process; of others (Profile::Merge), their main thread's.
void TrackWriter::WriteProcesses() {
  for (const ProfileThread& thread : profile_.threads) {
    const bool is_first = processes_.empty();
    const auto [process, is_new] = processes_.try_emplace(thread.pid, next_uuid_);
    if (!is_new) continue;
    const uint64_t uuid = next_uuid_++;
    std::string name = is_first ? profile_.program : "";
    for (const ProfileThread& other : profile_.threads) {
      if (name.empty() && other.pid == thread.pid && other.tid == thread.pid) name = profile_.strings[other.name];
    }
    packets_.Packet(kTrackSequence, [&](pbf_writer& message) {
      pbf_writer track(message, packet::kTrackDescriptor);
      track.add_uint64(track::kUuid, uuid);
      pbf_writer descriptor(track, track::kProcess);
      descriptor.add_int32(process::kPid, static_cast<int32_t>(thread.pid));
      if (!name.empty()) descriptor.add_string(process::kName, base::ValidUtf8(name));
    });
  }
}

void TrackWriter::WriteThreads() {
  for (uint32_t i = 0; i < profile_.threads.size(); ++i) {
    const ProfileThread& thread = profile_.threads[i];
    threads_.push_back(next_uuid_++);
    packets_.Packet(kTrackSequence, [&](pbf_writer& message) {
      pbf_writer track(message, packet::kTrackDescriptor);
      track.add_uint64(track::kUuid, threads_.back());
      pbf_writer descriptor(track, track::kThread);
      descriptor.add_int32(thread::kPid, static_cast<int32_t>(thread.pid));
      descriptor.add_int64(thread::kTid, thread.tid);
      const std::string name = profile_.ThreadName(i);
      if (!name.empty()) descriptor.add_string(thread::kName, base::ValidUtf8(name));
    });
  }
}

uint64_t TrackWriter::AddTrack(std::string_view name, uint64_t parent) {
  const uint64_t uuid = next_uuid_++;
  packets_.Packet(kTrackSequence, [&](pbf_writer& message) {
    pbf_writer track(message, packet::kTrackDescriptor);
    track.add_uint64(track::kUuid, uuid);
    track.add_string(track::kName, base::ValidUtf8(name));
    if (parent != 0) track.add_uint64(track::kParentUuid, parent);
  });
  return uuid;
}

// One slice over the whole profile, whose arguments are the accounting.
void TrackWriter::WriteAccounting() {
  const uint64_t process = threads_.empty() ? 0 : processes_[profile_.threads[0].pid];
  const uint64_t track = AddTrack("perfkit", process);
  const std::vector<std::string> lines = AccountingLines(profile_);
  packets_.PacketAt(kTrackSequence, profile_.from_ns, [&](pbf_writer& message) {
    pbf_writer event(message, packet::kTrackEvent);
    event.add_uint32(event::kType, event::kSliceBegin);
    event.add_uint64(event::kTrackUuid, track);
    event.add_string(event::kName, "accounting");
    for (size_t i = 0; i < lines.size(); ++i) AddText(event, std::to_string(i + 1), lines[i]);
  });
  End(std::max(profile_.from_ns, profile_.to_ns), track);
}

void TrackWriter::WriteSlices() {
  std::map<std::pair<uint32_t, Kind>, std::vector<Slice>> slices;  // by thread and kind
  for (uint32_t i = 0; i < profile_.zones.size(); ++i) {
    const ProfileZone& zone = profile_.zones[i];
    slices[{zone.thread, zone.is_frame ? Kind::kFrame : Kind::kZone}].push_back({zone.from_ns, zone.to_ns, i});
  }
  const size_t off_cpu = profile_.EventIndex(kOffCpuEvent);
  for (uint32_t i = 0; i < profile_.samples.size(); ++i) {
    const ProfileSample& sample = profile_.samples[i];
    if (sample.event != off_cpu || sample.merged()) continue;
    constexpr uint64_t kMaxTime = std::numeric_limits<int64_t>::max();  // readers' times are signed
    const uint64_t to_ns = sample.time_ns + std::min(sample.weight, kMaxTime - std::min(kMaxTime, sample.time_ns));
    slices[{sample.thread, Kind::kWait}].push_back({sample.time_ns, to_ns, i});
  }
  for (auto& [key, group] : slices) WriteNested(key.second, key.first, group);
}

void TrackWriter::WriteNested(Kind kind, uint32_t thread, std::vector<Slice>& slices) {
  constexpr std::string_view kNames[] = {"zones", "frames", "off the CPU"};
  const std::string_view name = kNames[static_cast<size_t>(kind)];
  std::sort(slices.begin(), slices.end());
  const uint64_t track = kind == Kind::kZone ? threads_[thread] : AddTrack(name, threads_[thread]);
  std::vector<uint64_t> open;  // when the slices end that are under way, the innermost last
  for (const Slice& slice : slices) {
    if (packets_.failed()) return;
    while (!open.empty() && open.back() <= slice.from_ns) {
      End(open.back(), track);
      open.pop_back();
    }
    // It would end after the slice that it began in.
    if (!open.empty() && slice.to_ns > open.back()) {
      const uint64_t own = AddTrack(name, threads_[thread]);
      Begin(kind, slice, own);
      End(slice.to_ns, own);
      continue;
    }
    Begin(kind, slice, track);
    open.push_back(slice.to_ns);
  }
  for (; !open.empty(); open.pop_back()) End(open.back(), track);
}

// Names of zones are interned: there are few of them, and many zones.
void TrackWriter::InternName(pbf_writer& message, uint32_t name) {
  if (written_names_[name]) return;
  written_names_[name] = true;
  pbf_writer interned(message, packet::kInternedData);
  pbf_writer entry(interned, interned::kEventNames);
  entry.add_uint64(interned::kIid, uint64_t{name} + 1);
  entry.add_string(interned::kText, base::ValidUtf8(profile_.strings[name]));
}

void TrackWriter::Begin(Kind kind, const Slice& slice, uint64_t track) {
  const bool is_wait = kind == Kind::kWait;
  const uint32_t name = is_wait ? 0 : profile_.zones[slice.index].name;
  packets_.PacketAt(kTrackSequence, slice.from_ns, [&](pbf_writer& message) {
    if (!is_wait) InternName(message, name);
    pbf_writer event(message, packet::kTrackEvent);
    event.add_uint32(event::kType, event::kSliceBegin);
    event.add_uint64(event::kTrackUuid, track);
    if (!is_wait) event.add_uint64(event::kNameIid, uint64_t{name} + 1);
    Annotate(kind, slice.index, event);
  });
}

// What is known of a slice beside its times: its cause; of a wait, what was waited for.
void TrackWriter::Annotate(Kind kind, uint32_t index, pbf_writer& event) const {
  if (kind != Kind::kWait) {
    const ProfileZone& zone = profile_.zones[index];
    if (zone.cause != 0) AddText(event, "cause", profile_.strings[zone.cause]);
    if (zone.reason != 0) AddText(event, "kept", profile_.strings[zone.reason]);
    if (zone.state != 0) AddText(event, "state", profile_.strings[zone.state]);
    if (zone.worst_by != 0) AddText(event, "worst by", profile_.strings[zone.worst_by]);
    if (cut_ != nullptr && index == cut_->frame.zone) Explain(event);
    return;
  }
  const ProfileSample& sample = profile_.samples[index];
  const bool has_wait = sample.wait != ProfileSample::kNoWait;
  const std::string name = has_wait ? profile::WaitText(profile_, profile_.waits[sample.wait]) : "";
  event.add_string(event::kName, base::ValidUtf8(name.empty() ? "off the CPU" : name));
  AddText(event, "stack", StackQualityName(sample.quality));
  if (const auto flow = flows_.find(index); flow != flows_.end()) event.add_fixed64(event::kFlowIds, flow->second);
  if (!has_wait || !profile_.waits[sample.wait].blocked_in_syscall) return;
  const ProfileWait& wait = profile_.waits[sample.wait];
  {
    pbf_writer entry(event, event::kDebugAnnotations);
    entry.add_string(annotation::kName, "syscall");
    entry.add_int64(annotation::kIntValue, wait.syscall);
  }
  pbf_writer entry(event, event::kDebugAnnotations);
  entry.add_string(annotation::kName, "arguments");
  for (const uint64_t argument : wait.arguments) {
    pbf_writer value(entry, annotation::kArrayValues);
    value.add_uint64(annotation::kUintValue, argument);
  }
}

// The causes of the frame, its parts, and what is not known.
void TrackWriter::Explain(pbf_writer& event) const {
  const SlowFrame& frame = cut_->frame;
  AddText(event, "slow frame", cut_->text.substr(0, cut_->text.find('\n')));
  size_t number = 0;
  for (const FrameCause& cause : frame.causes) {
    AddText(event, absl::StrFormat("cause %d", ++number),
            absl::StrFormat("%+d ns, %s: %s", cause.share_ns, FrameCauseConfidenceName(cause.confidence),
                            FormatFrameCause(profile_, cause)));
  }
  number = 0;
  for (const FramePart& part : frame.parts) {
    AddText(event, absl::StrFormat("part %d", ++number),
            absl::StrFormat("%+d ns, %d here, %d usually: %s", part.excess_ns(), part.ns, part.usual_ns,
                            profile::PartText(profile_, part)));
  }
  if (const std::string ghz = profile::FrequencyText(frame); !ghz.empty()) AddText(event, "frequency", ghz);
  if (frame.rest_ns != 0) AddText(event, "rest", absl::StrFormat("%+d ns: medians do not add up", frame.rest_ns));
  number = 0;
  for (const FaultedMemory& faults : profile::ToldFaults(frame)) {
    AddText(event, absl::StrFormat("faults %d", ++number),
            absl::StrFormat("%d %s", faults.faults, profile::FaultText(profile_, faults)));
  }
  number = 0;
  for (const std::string& gap : FrameGaps(*cut_)) AddText(event, absl::StrFormat("not known %d", ++number), gap);
}

void TrackWriter::End(uint64_t time_ns, uint64_t track) {
  packets_.PacketAt(kTrackSequence, time_ns, [&](pbf_writer& message) {
    pbf_writer event(message, packet::kTrackEvent);
    event.add_uint32(event::kType, event::kSliceEnd);
    event.add_uint64(event::kTrackUuid, track);
  });
}

// Each task has a track, whatever the threads of its parts, below one track of its process.
void TrackWriter::WriteTasks() {
  const std::vector<ProfileTaskPart>& parts = profile_.task_parts;
  // Tasks of two TaskCounters may have the same number.
  const auto key = [&](uint32_t i) {
    return std::tuple(profile_.threads[parts[i].thread].pid, parts[i].number,
                      std::string_view(profile_.strings[parts[i].name]));
  };
  std::vector<uint32_t> order(parts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  uint64_t group = 0;
  for (auto from = order.begin(); from != order.end() && !packets_.failed();) {
    const auto to = std::find_if(from, order.end(), [&](uint32_t i) { return key(i) != key(*from); });
    const bool is_new_process = from == order.begin() || std::get<0>(key(*from)) != std::get<0>(key(*(from - 1)));
    if (is_new_process) group = AddTrack("tasks", processes_[std::get<0>(key(*from))]);
    WriteTask(group, {from, to});
    from = to;
  }
}

void TrackWriter::WriteTask(uint64_t group, std::span<const uint32_t> parts) {
  const ProfileTaskPart& first = profile_.task_parts[parts[0]];
  const uint64_t track = AddTrack(absl::StrFormat("%s %d", profile_.strings[first.name], first.number), group);
  for (const uint32_t index : parts) {
    const ProfileTaskPart& part = profile_.task_parts[index];
    packets_.PacketAt(kTrackSequence, part.from_ns, [&](pbf_writer& message) {
      InternName(message, part.task);
      pbf_writer event(message, packet::kTrackEvent);
      event.add_uint32(event::kType, event::kSliceBegin);
      event.add_uint64(event::kTrackUuid, track);
      event.add_uint64(event::kNameIid, uint64_t{part.task} + 1);
      AddText(event, "thread", profile_.ThreadName(part.thread));
    });
    End(part.to_ns, track);
  }
}

void TrackWriter::WriteCounter(const ProfileCounter& counter) {
  const bool is_process = counter.thread == ProfileCounter::kWholeProcess;
  uint64_t parent = is_process ? 0 : threads_[counter.thread];
  if (is_process && !threads_.empty()) parent = processes_[profile_.threads[0].pid];
  const uint64_t uuid = next_uuid_++;
  packets_.Packet(kTrackSequence, [&](pbf_writer& message) {
    pbf_writer track(message, packet::kTrackDescriptor);
    track.add_uint64(track::kUuid, uuid);
    track.add_string(track::kName, base::ValidUtf8(profile_.strings[counter.name]));
    if (parent != 0) track.add_uint64(track::kParentUuid, parent);
    pbf_writer descriptor(track, track::kCounter);
    descriptor.add_uint32(counter::kUnit, UnitOf(counter.unit));
  });
  for (const ProfileCounter::Point& point : counter.points) {
    if (packets_.failed()) return;
    packets_.PacketAt(kTrackSequence, point.time_ns, [&](pbf_writer& message) {
      pbf_writer event(message, packet::kTrackEvent);
      event.add_uint32(event::kType, event::kCounterType);
      event.add_uint64(event::kTrackUuid, uuid);
      event.add_double(event::kDoubleCounterValue, point.value);
    });
  }
}

}  // namespace perfkit::exporters::perfetto
