// Parses the records of live stacks.
#include "perfkit/live_stack.h"
#include "perfkit/stack_frame.h"
#include "src/ring/record_fields.h"
#include "src/sample/live_record.h"

namespace perfkit {

using sample::LiveRecord;

std::optional<LiveStack> LiveStack::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  if (!ring::Is(record, RecordType::kCallchainDeferred)) return std::nullopt;
  LiveStack stack;
  uint64_t cookie = 0, count = 0, context = 0, state = 0;
  Bytes pcs, marks;
  ring::RecordFields fields(record, layout);
  fields.TakeAll(cookie, count, context);
  if (!fields.ok() || count == 0 || context != LiveRecord::kUserContext) return std::nullopt;
  fields.TakeList(pcs, count - 1, sizeof(uint64_t));
  fields.Take(state);
  fields.TakeList(marks, LiveRecord::MarkWords(count - 1), sizeof(uint64_t));
  if (!fields.ok() || LiveRecord::EndOf(state) > static_cast<uint8_t>(StackEnd::kNotReady)) return std::nullopt;
  if (LiveRecord::OuterOf(state) > count - 1) return std::nullopt;
  stack.pcs = Words(pcs.data(), count - 1);
  stack.marks = Words(marks.data(), marks.size() / sizeof(uint64_t));
  stack.end = static_cast<StackEnd>(LiveRecord::EndOf(state));
  stack.guesses = LiveRecord::GuessesOf(state);
  stack.omitted = LiveRecord::OmittedOf(state);
  stack.outer = LiveRecord::OuterOf(state);
  const SampleId who = ring::TrailerOf(record, layout);
  stack.pid = who.pid.value_or(0);
  stack.tid = who.tid.value_or(0);
  stack.time_ns = who.time_ns.value_or(0);
  return stack;
}

StackFrame LiveStack::operator[](size_t i) const noexcept {
  const uint64_t mark = marks[i / LiveRecord::kMarksAWord] >> 2 * (i % LiveRecord::kMarksAWord);
  return {.pc = pcs[i],
          .is_return_address = (mark & LiveRecord::kReturnAddress) != 0,
          .is_guess = (mark & LiveRecord::kGuess) != 0};
}

size_t LiveStack::CopyTo(std::span<StackFrame> frames) const noexcept {
  const size_t count = std::min(frames.size(), size());
  for (size_t i = 0; i < count; ++i) frames[i] = (*this)[i];
  return count;
}

}  // namespace perfkit
