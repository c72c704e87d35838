// Walks parts of overwriting rings. The work is bounded by the ring's size, whatever it contains.
#include "src/count/frame/detail_ring.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>

#include "src/count/switch_log.h"
#include "src/sys/perf_abi.h"

namespace perfkit::count {
namespace {

// PERF_RECORD_SAMPLE with IP|TIME|ADDR|READ.
struct FaultRecord {
  uint32_t type;
  uint16_t misc, size;
  uint64_t ip, time_ns, address, count;
};
static_assert(sizeof(FaultRecord) == kFaultRecordBytes);
static_assert(sizeof(SwitchRecord) == kSwitchRecordBytes);

// Returns the SWITCH record at `position`; nullopt if it was overwritten during the copy, or is another record.
std::optional<SwitchRecord> SwitchAt(const DetailRing& ring, uint64_t position) {
  SwitchRecord record;
  std::memcpy(&record, ring.data.data() + position % ring.data.size(), sizeof(record));
  if (ring.Head() - position > ring.data.size()) return std::nullopt;  // overwritten while it was copied
  if (record.type != sys::kRecordSwitch || record.size != sizeof(record)) return std::nullopt;
  return record;
}

// As SwitchAt, for a sample in a ring that is written backwards. A record may go on at the beginning of the data.
std::optional<FaultRecord> FaultAt(const DetailRing& ring, uint64_t position) {
  FaultRecord record;
  const size_t at = position % ring.data.size(), first = std::min(sizeof(record), ring.data.size() - at);
  std::memcpy(&record, ring.data.data() + at, first);
  std::memcpy(reinterpret_cast<std::byte*>(&record) + first, ring.data.data(), sizeof(record) - first);
  if (position + sizeof(record) - ring.Head() > ring.data.size()) return std::nullopt;
  if (record.type != sys::kRecordSample || record.size < sizeof(record)) return std::nullopt;
  return record;
}

// The part of [from, head) that the ring still holds.
struct Stretch {
  uint64_t begin, end;
  bool cut;
};
Stretch Held(const DetailRing& ring, uint64_t from) {
  if (!ring.known() || ring.data.size() < kSwitchRecordBytes) return {0, 0, false};
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
  for (uint64_t at = stretch.begin; stretch.end - at >= kSwitchRecordBytes; at += kSwitchRecordBytes) {
    if (const auto record = SwitchAt(ring, at)) {
      pairs.Add(*record, &tally);
    } else {
      tally.at_least = true;
    }
  }
  return tally;
}

// Before the first record, the head and the ring's bytes are 0.
FaultMark MarkFaults(const DetailRing& ring) {
  FaultMark mark;
  if (ring.data.size() < kFaultRecordBytes) return mark;
  do {
    mark.head = ring.Head();
    const size_t at = (mark.head + offsetof(FaultRecord, count)) % ring.data.size();
    std::memcpy(&mark.count, ring.data.data() + at, sizeof(mark.count));
  } while (ring.Head() != mark.head);  // A handler of a signal has faulted in between.
  return mark;
}

// From the newest record to the oldest one: the last addresses that are stored are those of the first faults.
FaultTally TallyFaults(const DetailRing& ring, const FaultMark& from, std::span<uint64_t> addresses) {
  FaultTally tally;
  if (!ring.known() || ring.data.size() < kFaultRecordBytes) return tally;
  const FaultMark now = MarkFaults(ring);
  tally.faults = now.count - from.count;
  size_t stored = 0;
  uint64_t at = now.head;
  while (at != from.head) {
    const auto record = at - now.head < ring.data.size() ? FaultAt(ring, at) : std::nullopt;
    if (!record) break;
    if (!addresses.empty()) addresses[stored % addresses.size()] = record->address;
    ++stored;
    at += record->size;
  }
  tally.at_least = at != from.head;
  tally.addresses = std::min(stored, addresses.size());
  if (stored > addresses.size() && !addresses.empty()) {
    std::rotate(addresses.begin(), addresses.begin() + static_cast<ptrdiff_t>(stored % addresses.size()),
                addresses.end());
  }
  std::reverse(addresses.begin(), addresses.begin() + static_cast<ptrdiff_t>(tally.addresses));
  return tally;
}

}  // namespace perfkit::count
