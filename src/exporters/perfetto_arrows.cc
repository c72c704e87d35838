// Flows of a Perfetto trace, which viewers draw as arrows from event to event in the order of time. A wait is one
// slice: the arrow of its waker ends in an instant at the slice's end, that of the holder in the slice itself.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "src/base/utf8.h"
#include "src/exporters/arrows.h"
#include "src/exporters/perfetto_tracks.h"
#include "src/profile/wait_text.h"

namespace perfkit::exporters::perfetto {

struct TrackWriter::Instant {
  uint64_t time_ns = 0, flow = 0;
  std::string name;
};

// Before the waits: events of one time keep the order of the file, and a flow begins at the holder.
void TrackWriter::WriteArrows() {
  std::map<uint32_t, std::vector<Instant>> instants;  // by thread
  const auto name_of = [&](uint32_t thread) {
    ProfileWait wait;
    wait.holder = thread;
    return profile::HolderName(profile_, wait);
  };
  uint64_t flow = 0;
  for (const Arrow& arrow : FindArrows(profile_)) {
    ++flow;
    if (arrow.kind == Arrow::Kind::kHeld) {
      instants[arrow.from].push_back({arrow.at_ns, flow, "holds the lock that " + name_of(arrow.to) + " waits for"});
      flows_[arrow.sample] = flow;
    } else {
      instants[arrow.from].push_back({arrow.at_ns, flow, "wakes " + name_of(arrow.to)});
      instants[arrow.to].push_back({arrow.at_ns, flow, "woken by " + name_of(arrow.from)});
    }
  }
  // Instants of one time keep the order of the file: all wakers come before all that are woken.
  for (const bool is_end : {false, true}) {
    for (const auto& [thread, all] : instants) WriteInstants(thread, all, is_end);
  }
}

void TrackWriter::WriteInstants(uint32_t thread, const std::vector<Instant>& instants, bool is_end) {
  const auto is_wanted = [&](const Instant& instant) { return instant.name.starts_with("woken by ") == is_end; };
  if (std::none_of(instants.begin(), instants.end(), is_wanted)) return;
  const uint64_t track = AddTrack(is_end ? "woken" : "locks and wake-ups", threads_[thread]);
  for (const Instant& instant : instants) {
    if (!is_wanted(instant) || packets_.failed()) continue;
    packets_.PacketAt(kTrackSequence, instant.time_ns, [&](pbf_writer& message) {
      pbf_writer event(message, packet::kTrackEvent);
      event.add_uint32(event::kType, event::kInstant);
      event.add_uint64(event::kTrackUuid, track);
      event.add_string(event::kName, base::ValidUtf8(instant.name));
      event.add_fixed64(event::kFlowIds, instant.flow);
    });
  }
}

}  // namespace perfkit::exporters::perfetto
