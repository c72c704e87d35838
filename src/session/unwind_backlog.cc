// Adds records at once as long as that is fast; else copies what is in the rings, and adds that in slices.
#include "src/session/unwind_backlog.h"

#include <cstring>
#include <optional>
#include <utility>

#include "src/session/cpu_time.h"
#include "src/sys/clock.h"

namespace perfkit::session {
namespace {

constexpr size_t kSizeAt = 6;  // of the size in a record's header: struct perf_event_header

// Copies a sample without its dump, as the kernel writes one without a stack: the dump's size is 0, and neither bytes
// nor the number of valid ones follow (perf_output_sample_ustack in kernel/events/core.c).
std::vector<std::byte> WithoutDump(const RawRecord& record, const UserStack& stack) {
  const std::byte* const dump = stack.bytes.data();
  const std::byte* const rest = dump + stack.reserved + sizeof(uint64_t);
  std::vector<std::byte> bytes(record.data, dump);
  std::memset(bytes.data() + bytes.size() - sizeof(uint64_t), 0, sizeof(uint64_t));
  bytes.insert(bytes.end(), rest, record.data + record.size);
  const auto size = static_cast<uint16_t>(bytes.size());
  std::memcpy(bytes.data() + kSizeAt, &size, sizeof(size));
  return bytes;
}

uint64_t Now() { return sys::ClockNs(CLOCK_MONOTONIC); }

}  // namespace

void UnwindBacklog::Drain(const SampleLayout& layout, Read empty_rings, Add add, uint64_t& own_cpu_ns) {
  Empty(layout, empty_rings, add, own_cpu_ns);  // from Keep
  const uint64_t begun_ns = Now();
  empty_rings([&](const SamplerRecord& record) {
    if (waiting_.empty() && (!has_dumps_ || Now() - begun_ns < kSliceNs)) return add(record, false);
    Push(record, layout);
  });
  Empty(layout, empty_rings, add, own_cpu_ns);
}

void UnwindBacklog::Empty(const SampleLayout& layout, Read empty_rings, Add add, uint64_t& own_cpu_ns) {
  const uint64_t begun_cpu_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID);
  // The last round reads nothing: what came during the one before has left the rings, too. If late, it ends anyway; if
  // adding is slow even without dumps, the rest stays in the rings.
  for (bool is_done = waiting_.empty(); !is_done;) {
    {
      const CpuTime cpu_time(own_cpu_ns);
      const uint64_t begun_ns = Now();
      while (!waiting_.empty()) {
        AddFront(add);
        if (Now() - begun_ns >= kSliceNs) break;
      }
    }
    const uint64_t cpu_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID) - begun_cpu_ns;
    is_late_ = cpu_ns > kPatienceNs;
    const bool is_over = cpu_ns > 2 * kPatienceNs;
    if (!is_over && (!waiting_.empty() || !is_late_)) Keep(layout, empty_rings);
    is_done = waiting_.empty();
  }
  is_late_ = false;
}

void UnwindBacklog::Keep(const SampleLayout& layout, Read empty_rings) {
  if (bytes_ > max_bytes_) return;
  empty_rings([&](const SamplerRecord& record) { Push(record, layout); });
}

void UnwindBacklog::Push(const SamplerRecord& record, const SampleLayout& layout) {
  Waiting& waiting = waiting_.emplace_back(Waiting{.record = record});
  if (has_dumps_ && (is_late_ || bytes_ > max_bytes_ / 2)) {
    const std::optional<Sample> sample =
        record.type == static_cast<uint32_t>(RecordType::kSample) ? Sample::Parse(record, layout) : std::nullopt;
    const UserStack stack = sample ? sample->user_stack() : UserStack{};
    if (stack.reserved != 0) {
      waiting.bytes = WithoutDump(record, stack);
      waiting.record.size = static_cast<uint16_t>(waiting.bytes.size());
      waiting.dump_dropped = true;
    }
  }
  if (!waiting.dump_dropped) waiting.bytes.assign(record.data, record.data + record.size);
  waiting.record.data = waiting.bytes.data();
  bytes_ += waiting.bytes.size();
}

// Removed first, because `add` may throw.
void UnwindBacklog::AddFront(Add add) {
  const Waiting waiting = std::move(waiting_.front());
  waiting_.pop_front();
  bytes_ -= waiting.bytes.size();
  add(waiting.record, waiting.dump_dropped);
}

}  // namespace perfkit::session
