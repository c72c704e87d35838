// Walks parts of overwriting rings whose records all have the same size. The work is bounded by the ring's size,
// whatever it contains.
#include "src/count/frame/detail_ring.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "src/count/switch_log.h"
#include "src/sys/perf_abi.h"

namespace perfkit::count {
namespace {

// PERF_RECORD_SAMPLE with IP|TIME|ADDR.
struct FaultRecord {
  uint32_t type;
  uint16_t misc, size;
  uint64_t ip, time_ns, address;
};
static_assert(sizeof(FaultRecord) == kDetailRecordBytes);
static_assert(sizeof(SwitchRecord) == kDetailRecordBytes);

// Returns the record at `position`; nullopt if it was overwritten before the copy was complete, or is not of this type.
template <class Record>
std::optional<Record> RecordAt(const DetailRing& ring, uint64_t position, uint32_t type) {
  Record record;
  std::memcpy(&record, ring.data.data() + position % ring.data.size(), sizeof(Record));
  if (ring.Head() - position > ring.data.size()) return std::nullopt;  // overwritten while it was copied
  if (record.type != type || record.size != sizeof(Record)) return std::nullopt;
  return record;
}

// The part of [from, head) that the ring still holds.
struct Stretch {
  uint64_t begin, end;
  bool cut;
};
Stretch Held(const DetailRing& ring, uint64_t from) {
  if (!ring.known() || ring.data.size() < kDetailRecordBytes) return {0, 0, false};
  const uint64_t head = ring.Head();
  const bool cut = head - from > ring.data.size();
  return {cut ? head - ring.data.size() : from, head, cut};
}

// Pairs each switch out with the switch in that follows it.
class SwitchPairs {
 public:
  void Add(const SwitchRecord& record, SwitchTally* tally) {
    if (cpu_ && *cpu_ != record.cpu) ++tally->migrations;
    cpu_ = record.cpu;
    if (record.is_out()) {
      out_ = record;
      pending_ = true;
      return;
    }
    // It was switched out before the first record.
    if (!pending_) {
      tally->at_least = true;
      return;
    }
    const uint64_t off_cpu_ns = record.time_ns > out_.time_ns ? record.time_ns - out_.time_ns : 0;
    const bool preempted = out_.is_preemption();
    ++(preempted ? tally->preemptions : tally->waits);
    (preempted ? tally->preempted_ns : tally->waited_ns) += off_cpu_ns;
    pending_ = false;
  }

 private:
  SwitchRecord out_{};
  bool pending_ = false;
  std::optional<uint32_t> cpu_;
};

}  // namespace

SwitchTally TallySwitches(const DetailRing& ring, uint64_t from) {
  const Stretch stretch = Held(ring, from);
  SwitchTally tally;
  tally.at_least = stretch.cut;
  SwitchPairs pairs;
  for (uint64_t at = stretch.begin; stretch.end - at >= kDetailRecordBytes; at += kDetailRecordBytes) {
    if (const auto record = RecordAt<SwitchRecord>(ring, at, sys::kRecordSwitch)) {
      pairs.Add(*record, &tally);
    } else {
      tally.at_least = true;
    }
  }
  return tally;
}

FaultTally TallyFaults(const DetailRing& ring, uint64_t from, std::span<uint64_t> addresses) {
  const Stretch stretch = Held(ring, from);
  FaultTally tally;
  if (!ring.known()) return tally;
  // Each fault is one record, so the ring's head also counts the overwritten ones. Only their addresses are lost.
  tally.faults = (stretch.end - (stretch.cut ? from : stretch.begin)) / kDetailRecordBytes;
  tally.at_least = stretch.cut;
  for (uint64_t at = stretch.begin; stretch.end - at >= kDetailRecordBytes && tally.addresses < addresses.size();
       at += kDetailRecordBytes) {
    if (const auto record = RecordAt<FaultRecord>(ring, at, sys::kRecordSample)) {
      addresses[tally.addresses++] = record->address;
    } else {
      tally.at_least = true;
    }
  }
  return tally;
}

}  // namespace perfkit::count
