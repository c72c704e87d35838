// Reads what happened to a thread from a part of its two detail rings: switches with times, page faults with addresses.
//
// Both rings overwrite. Records more than one ring's size away from the head have been overwritten, and the results say
// so. Switch records have one size, 32 bytes, so record n is at (32 n) mod the ring's size. Samples may be larger than
// their fields, by what other samplers of the same event on this thread ask for. So the kernel writes them backwards:
// the newest one is at the head, the one before it follows, and each has the count of all.
//
//   switch ring: dummy event, context_switch, sample_id_all, sample_type TID|TIME|CPU
//     [header 8][pid 4][tid 4][time 8][cpu 4][reserved 4]
//   fault ring: page-faults, sample_period 1, sample_type IP|TIME|ADDR|READ, write_backward
//     [header 8][ip 8][time 8][address 8][count 8]
// Sources: perf_event_header and PERF_RECORD_SWITCH in include/uapi/linux/perf_event.h; the order of the fields is that
// of perf_event__output_id_sample and perf_output_sample in kernel/events/core.c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace perfkit::count {

constexpr size_t kSwitchRecordBytes = 32;
constexpr size_t kFaultRecordBytes = 40;  // Or more.

// A view of a ring: its data, whose size is a power of two, and the head that the kernel moves. Tests use ordinary
// memory.
struct DetailRing {
  std::span<const std::byte> data;
  const uint64_t* head = nullptr;

  bool known() const { return head != nullptr; }
  // Returns the position of the next record, backwards that of the newest one; 0 without a ring.
  uint64_t Head() const { return head != nullptr ? __atomic_load_n(head, __ATOMIC_ACQUIRE) : 0; }
};

struct SwitchTally {
  uint64_t preemptions = 0, preempted_ns = 0;  // switched out although it could have run
  uint64_t waits = 0, waited_ns = 0;
  uint64_t migrations = 0;
  bool at_least = false;  // some records were overwritten, or not of the expected kind
};

// Adds up the switches in [from, the ring's head). Called by the thread that the ring belongs to: it is running, so the
// last record is a switch in.
SwitchTally TallySwitches(const DetailRing& ring, uint64_t from);

// The state of the fault ring at a time.
struct FaultMark {
  uint64_t head = 0, count = 0;
};
FaultMark MarkFaults(const DetailRing& ring);

struct FaultTally {
  uint64_t faults = 0;    // exact, whatever was overwritten
  size_t addresses = 0;   // number of addresses that were copied
  bool at_least = false;  // the first faults' addresses were overwritten: those copied are of later ones
};

// Counts the faults since `from`, and copies the addresses of the first ones to `addresses`.
FaultTally TallyFaults(const DetailRing& ring, const FaultMark& from, std::span<uint64_t> addresses);

}  // namespace perfkit::count
