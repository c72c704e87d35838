// ThreadSlots with PERFKIT_ENABLE=0. Included by thread_slots.h; do not include it directly.
#pragma once

#include "perfkit/off/reason.h"
#include "perfkit/thread_slots.h"

namespace PERFKIT_NAMESPACE {

class ThreadSlots {
 public:
  struct Options {
    size_t max_threads = 256;
    std::optional<ReadPath> only_path{};
  };

  explicit ThreadSlots(const EventSpecs&) {}
  ThreadSlots(const EventSpecs&, const Options&) {}
  ThreadSlots(const ThreadSlots&) = delete;
  ThreadSlots& operator=(const ThreadSlots&) = delete;

  bool Attach() { return false; }
  void Publish() noexcept {}
  void Total(SlotTotals& out) const noexcept { out = {}; }
  Count count(const SlotTotals&, size_t) const { return {}; }
  size_t size() const { return 0; }
  std::string_view reason(size_t) const { return detail::kOffReason; }
  uint32_t refused() const { return 0; }
};

}  // namespace PERFKIT_NAMESPACE
