// The packets of a Perfetto trace.
#pragma once

#include <cstdint>

#include "src/exporters/perfetto_fields.h"
#include "src/exporters/proto_file.h"

namespace perfkit::exporters::perfetto {

using protozero::pbf_writer;

// Tracks, slices and counters are on the first sequence; each sampled event has one of its own, as the unit of what was
// sampled is a property of a sequence. Times are CLOCK_MONOTONIC's: each sequence says so once, in its defaults.
// A sequence is Perfetto's unit of state (TracePacket.trusted_packet_sequence_id): what one packet has interned, later
// packets of the same sequence may use by its ID.
inline constexpr uint32_t kTrackSequence = 1, kFirstSampleSequence = 2;

class PacketWriter {
 public:
  explicit PacketWriter(profile::SinkBuffer& out) : file_(out) {}

  // The first packet of a sequence. `fill_defaults` adds to its TracePacketDefaults, `fill` to the packet.
  template <class FillDefaults, class Fill>
  void Begin(uint32_t sequence, FillDefaults&& fill_defaults, Fill&& fill) {
    file_.Message(trace::kPacket, [&](pbf_writer& message) {
      message.add_uint32(packet::kSequenceId, sequence);
      message.add_uint32(packet::kSequenceFlags, packet::kFlagCleared);
      message.add_bool(packet::kIncrementalStateCleared, true);
      message.add_bool(packet::kFirstOnSequence, true);
      {
        pbf_writer sequence_defaults(message, packet::kDefaults);
        sequence_defaults.add_uint32(defaults::kTimestampClockId, kClockMonotonic);
        fill_defaults(sequence_defaults);
      }
      fill(message);
    });
  }

  // One without a time.
  template <class Fill>
  void Packet(uint32_t sequence, Fill&& fill) {
    file_.Message(trace::kPacket, [&](pbf_writer& message) {
      message.add_uint32(packet::kSequenceId, sequence);
      message.add_uint32(packet::kSequenceFlags, packet::kFlagNeedsState);
      fill(message);
    });
  }

  template <class Fill>
  void PacketAt(uint32_t sequence, uint64_t time_ns, Fill&& fill) {
    Packet(sequence, [&](pbf_writer& message) {
      message.add_uint64(packet::kTimestamp, time_ns);
      fill(message);
    });
  }

  bool failed() const { return file_.failed(); }

 private:
  ProtoFile file_;
};

}  // namespace perfkit::exporters::perfetto
