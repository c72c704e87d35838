// Converts the sums of a SlotTable to SlotTotals. SlotWriter defines the order of the words.
#pragma once

#include "perfkit/thread_slots.h"
#include "src/count/frame/event_plan.h"
#include "src/count/frame/slot_table.h"

namespace perfkit::count {

inline void SumSlots(const SlotTable& table, const EventPlan& plan, SlotTotals& out) noexcept {
  std::array<uint64_t, SlotTable::kMaxWords> words;
  const bool complete = table.Total(std::span(words).first(table.words()), &out.missing);
  out.missing = complete ? out.missing | plan.never() : ~0u;
  out.threads = table.claimed();
  for (size_t i = 0; i < plan.size(); ++i) out.values[i] = words[i];
  size_t w = plan.size();
  for (uint32_t left = plan.multiplexable(); left != 0; left &= left - 1, w += 2) {
    out.times[static_cast<size_t>(__builtin_ctz(left))] = {words[w], words[w + 1]};
  }
}

}  // namespace perfkit::count
