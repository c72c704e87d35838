// Writes a Perfetto trace: packets one after the other, each handed on when it is complete. Packets are written in the
// order that suits the writer, track by track and sample by sample; trace_processor sorts them by time.
#include "perfkit/exporters.h"
#include "src/exporters/perfetto_samples.h"
#include "src/exporters/perfetto_tracks.h"
#include "src/profile/event_choice.h"
#include "src/profile/frame_cut.h"

namespace perfkit {
namespace {

using exporters::perfetto::PacketWriter;
using protozero::pbf_writer;
namespace perfetto = exporters::perfetto;

// The trace's clock is CLOCK_MONOTONIC: readers would else take it for CLOCK_BOOTTIME, which the profile does not know.
void WriteClocks(const Profile& profile, exporters::ProtoFile& file) {
  file.Message(perfetto::trace::kPacket, [&](pbf_writer& message) {
    message.add_uint32(perfetto::packet::kSequenceId, perfetto::kTrackSequence);
    pbf_writer snapshot(message, perfetto::packet::kClockSnapshot);
    const auto add_clock = [&](uint32_t id, uint64_t time_ns) {
      pbf_writer clock(snapshot, perfetto::clock_snapshot::kClocks);
      clock.add_uint32(perfetto::clock_snapshot::kClockId, id);
      clock.add_uint64(perfetto::clock_snapshot::kTimestamp, time_ns);
    };
    add_clock(perfetto::kClockMonotonic, profile.from_ns);
    if (profile.realtime_offset_ns != 0) {
      add_clock(perfetto::kClockRealtime, profile.from_ns + profile.realtime_offset_ns);
    }
    snapshot.add_uint32(perfetto::clock_snapshot::kPrimaryTraceClock, perfetto::kClockMonotonic);
  });
}

absl::Status WriteTrace(const Profile& profile, const profile::FrameCut* cut, const WriteOptions& options,
                        ProfileSink sink) {
  if (!options.event.empty()) {
    const absl::StatusOr<size_t> event = profile::ChooseEvent(profile, options.event);
    if (!event.ok()) return event.status();
  }
  profile::SinkBuffer out(sink);
  exporters::ProtoFile file(out);
  WriteClocks(profile, file);
  PacketWriter packets(out);
  perfetto::TrackWriter(profile, packets, cut).Write();
  perfetto::SampleWriter(profile, options, packets).Write();
  return out.Finish();
}

}  // namespace

absl::Status WritePerfetto(const Profile& profile, const WriteOptions& options, ProfileSink sink) {
  return WriteTrace(profile, nullptr, options, sink);
}

absl::Status WriteSlowFramePerfetto(const Profile& profile, const SlowFrame& frame, const WriteOptions& options,
                                    ProfileSink sink) {
  const profile::FrameCut cut = profile::CutFrame(profile, frame, profile::References::kLeave);
  return WriteTrace(cut.profile, &cut, options, sink);
}

}  // namespace perfkit
