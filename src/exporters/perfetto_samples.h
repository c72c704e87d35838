// The samples of a Perfetto trace: StackSample packets, and what they intern.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfkit/profile_writer.h"
#include "src/exporters/perfetto_packets.h"

namespace perfkit::exporters::perfetto {

// A stream for each sampled event, with the event as its primary counter. Samples of followers go with the sample that
// they follow, as follower weights. Samples that were merged have no time of their own: they are a stream apart, at the
// profile's begin, and its name says that their times are not known.
class SampleWriter {
 public:
  SampleWriter(const Profile& profile, const WriteOptions& options, PacketWriter& packets);

  void Write();

 private:
  // A packet sequence, and which entries of the profile's tables it knows already.
  struct Stream {
    explicit Stream(const Profile& profile, uint64_t frames);
    uint32_t sequence = 0;
    std::vector<bool> callstacks, frames, mappings, unnamed;  // by stack, frame, module, location
    std::vector<bool> functions, files, paths, build_ids;     // by string
    std::vector<bool> contexts;                               // by ContextOf - 1
  };

  Stream& StreamOf(const ProfileSample& sample);
  void BeginStream(const ProfileSample& sample, Stream& stream);
  void AddCounter(pbf_writer& message, uint32_t tag, uint64_t iid, const ProfileEvent& event) const;

  bool IsOffCpu(const ProfileSample& sample) const { return profile_.events[sample.event].name == kOffCpuEvent; }
  size_t FollowersOf(size_t leader) const;
  void WriteSample(size_t index, size_t followers);
  void AddContext(pbf_writer& message, const ProfileSample& sample) const;
  void AddFollowers(pbf_writer& message, size_t index, size_t followers);

  uint64_t ContextOf(const ProfileSample& sample) const;
  void InternContext(pbf_writer& interned, Stream& stream, const ProfileSample& sample) const;
  void InternStack(pbf_writer& interned, Stream& stream, uint32_t stack);
  void InternFrame(pbf_writer& interned, Stream& stream, uint32_t location, uint32_t call);
  uint64_t InternFunction(pbf_writer& interned, Stream& stream, uint32_t location, const ProfileCall& call) const;
  void InternMapping(pbf_writer& interned, Stream& stream, uint32_t module) const;
  // Returns the ID of one of Profile::strings in one of the sequence's tables.
  uint64_t InternText(pbf_writer& interned, uint32_t tag, std::vector<bool>& known, uint32_t string) const;

  const Profile& profile_;
  const WriteOptions& options_;
  PacketWriter& packets_;
  uint64_t frames_ = 0;
  std::vector<uint64_t> first_frames_;                   // of each location: the number of its first frame
  std::map<std::pair<uint16_t, bool>, Stream> streams_;  // by event and whether they are merged
  // Buffers of one sample.
  std::vector<uint32_t> path_;
  std::vector<uint64_t> follower_iids_, follower_weights_;
};

}  // namespace perfkit::exporters::perfetto
