// The stacks of a sampler with CallStack::Live, as records of their own.
#pragma once

#include "perfkit/detail/library_only.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "perfkit/sample.h"
#include "perfkit/sampler_record.h"
#include "perfkit/stack_frame.h"

namespace perfkit {

// The call stack of a sample, with CallStack::Live. A view: valid as long as its record. Thread-safe to read; does not
// allocate.
//
// Belongs to the latest earlier sample of the same thread and event whose user pc equals pcs[0]. The user pc is ip()
// for a sample in user code, and the pc in user_registers() (kSampleRegsUser) for a sample in the kernel. Exception: if
// a system call is restarted, pcs[0] is its instruction, which ends at the user pc. Samples that were taken in the
// kernel during one system call share one stack.
struct LiveStack {
  uint32_t event = SamplerRecord::kNoEvent;  // Index in SamplerOptions::events. Set by Dispatch, not by Parse.
  uint32_t pid = 0, tid = 0;                 // Of the thread.
  uint64_t time_ns = 0;  // Start of the walk, some microseconds after the sample; by SamplerOptions::clock_id.
  StackEnd end{};        // Why the walk stopped.
  uint32_t guesses = 0;  // Number of frames that are not confirmed: StackFrame::is_guess.
  Words pcs;             // Innermost first.
  // Number of frames that were left out, before the last `outer` ones: as UnwoundStack's. CallStack::outer.
  uint32_t omitted = 0, outer = 0;

  // Returns the number of frames.
  size_t size() const { return pcs.size(); }
  // Returns frame i. Requires i < size().
  StackFrame operator[](size_t i) const noexcept;
  // Copies as many frames as fit, innermost first. Returns their number.
  size_t CopyTo(std::span<StackFrame> frames) const noexcept;

  // Parses a record. Returns nullopt if it is not a live stack. `layout` is Sampler::layout().
  static std::optional<LiveStack> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
  Words marks;  // Data of operator[]: 2 bits for each frame (src/sample/live_record.h).
};

// As Dispatch of sample.h, for a SamplerRecord. The visitor may also take a LiveStack.
template <class Visitor>
bool Dispatch(const SamplerRecord& record, const SampleLayout& layout, Visitor&& visit) {
  if constexpr (std::is_invocable_v<Visitor&, const LiveStack&>) {
    if (std::optional<LiveStack> stack = LiveStack::Parse(record, layout)) {
      stack->event = record.event;
      visit(std::as_const(*stack));
      return true;
    }
  }
  return Dispatch(static_cast<const RawRecord&>(record), layout, std::forward<Visitor>(visit));
}

}  // namespace perfkit
