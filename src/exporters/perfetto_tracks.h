// What a Perfetto trace shows over time beside samples: processes, threads, zones, frames, tasks, waits, counters.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "perfkit/profile.h"
#include "src/exporters/perfetto_packets.h"
#include "src/profile/frame_cut.h"

namespace perfkit::exporters::perfetto {

class TrackWriter {
 public:
  // `cut`: the frame that the profile is about, whose slice gets its explanation; or nullptr.
  TrackWriter(const Profile& profile, PacketWriter& packets, const profile::FrameCut* cut);

  void Write();

 private:
  struct Slice {
    uint64_t from_ns = 0, to_ns = 0;
    uint32_t index = 0;  // of its zone, or of its sample
    bool operator<(const Slice& other) const {
      if (from_ns != other.from_ns) return from_ns < other.from_ns;
      return to_ns != other.to_ns ? to_ns > other.to_ns : index < other.index;  // outer ones first
    }
  };
  enum class Kind { kZone, kFrame, kWait };
  struct Instant;

  void WriteProcesses();
  void WriteThreads();
  void WriteAccounting();
  void WriteSlices();
  void WriteNested(Kind kind, uint32_t thread, std::vector<Slice>& slices);
  void WriteArrows();
  void WriteInstants(uint32_t thread, const std::vector<Instant>& instants, bool is_end);
  void WriteTasks();
  void WriteTask(uint64_t group, std::span<const uint32_t> parts);
  void WriteCounter(const ProfileCounter& counter);
  void InternName(pbf_writer& message, uint32_t name);

  // A new track below another one.
  uint64_t AddTrack(std::string_view name, uint64_t parent);
  void Begin(Kind kind, const Slice& slice, uint64_t track);
  void End(uint64_t time_ns, uint64_t track);
  void Annotate(Kind kind, uint32_t index, pbf_writer& event) const;
  void Explain(pbf_writer& event) const;

  const Profile& profile_;
  PacketWriter& packets_;
  const profile::FrameCut* const cut_;
  uint64_t next_uuid_ = 1;
  std::map<uint32_t, uint64_t> processes_;                                        // tracks by pid
  std::vector<uint64_t> threads_;                                                 // tracks
  std::map<uint32_t, uint64_t> flows_;                                            // of waits, by sample
  std::vector<bool> written_names_ = std::vector<bool>(profile_.strings.size());  // event names of the sequence
};

}  // namespace perfkit::exporters::perfetto
