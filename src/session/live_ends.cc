// Puts the mark for what was left out between the two ends of a deep stack, and words the notes.
#include "src/session/live_ends.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "src/session/stack_table.h"

namespace perfkit::session {
namespace {

std::string Stacks(uint64_t count) { return absl::StrFormat("%d stack%s", count, count == 1 ? "" : "s"); }

}  // namespace

std::span<const StackFrame> LiveEnds::Take(const LiveStack& stack, std::span<StackFrame> room) {
  size_t count = stack.CopyTo(room.first(room.empty() ? 0 : room.size() - 1));
  not_ready_ += stack.end == StackEnd::kNotReady;
  limited_ += stack.end == StackEnd::kLimit;
  if (stack.omitted != 0 && stack.outer < count) {
    ++left_out_;
    max_calls_ = std::max(max_calls_, uint64_t{stack.omitted} + stack.size());
    const auto at = room.begin() + static_cast<ptrdiff_t>(count - stack.outer);
    std::copy_backward(at, at + stack.outer, at + stack.outer + 1);
    *at = StackTable::kLeftOut;
    ++count;
  }
  return room.first(count);
}

void LiveEnds::AddNotes(std::vector<std::string>& notes) const {
  if (not_ready_ != 0) {
    notes.push_back(
        absl::StrFormat("%s of the first milliseconds %s at modules whose unwind tables were still to be built",
                        Stacks(not_ready_), not_ready_ == 1 ? "ends" : "end"));
  }
  if (left_out_ != 0) {
    notes.push_back(
        absl::StrFormat("%s too deep for a record, with '[frames left out]' between inner and outer calls: the deepest "
                        "has %d calls",
                        Stacks(left_out_), max_calls_));
  }
  if (limited_ != 0) {
    notes.push_back(absl::StrFormat("%s with more calls than were looked for, without the root", Stacks(limited_)));
  }
}

}  // namespace perfkit::session
