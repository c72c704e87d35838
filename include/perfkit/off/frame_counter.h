// FrameCounter with PERFKIT_ENABLE=0. Included by frame_counter.h; do not include it directly.
#pragma once

#include <type_traits>

#include "perfkit/frame_counter.h"
#include "perfkit/off/reason.h"

namespace PERFKIT_NAMESPACE {

class FrameCounter {
 public:
  using Options = FrameOptions;

  explicit FrameCounter(const Options&) noexcept {}
  FrameCounter(const FrameCounter&) = delete;
  FrameCounter& operator=(const FrameCounter&) = delete;

  void Mark() noexcept {}
  FrameId DefineFrame(std::string_view, std::chrono::nanoseconds = {}) { return {}; }
  void Mark(FrameId) noexcept {}
  void Keep(std::string_view) noexcept {}
  void Keep(FrameId, std::string_view) noexcept {}
  void AttachState(std::string_view) noexcept {}
  void AttachState(FrameId, std::string_view) noexcept {}

  class [[nodiscard]] Zone {
   public:
    Zone(FrameCounter&, ZoneId) noexcept {}
    Zone(FrameCounter*, ZoneId) noexcept {}
    ~Zone() {}  // A variable with a destructor counts as used.
    Zone(const Zone&) = delete;
    Zone& operator=(const Zone&) = delete;
    void End(FrameRecord& counts) noexcept { counts = {}; }
  };
  void Enter(ZoneId) noexcept {}
  void Leave() noexcept {}
  ZoneId DefineZone(std::string_view) { return {""}; }

  class [[nodiscard]] AttachedThread {
   public:
    AttachedThread(AttachedThread&&) noexcept {}
    ~AttachedThread() {}  // As Zone's.

   private:
    friend class FrameCounter;
    AttachedThread() noexcept {}
  };
  AttachedThread AttachThread(std::string_view) { return {}; }

  // Accepts the same callables. Makes no std::function, because the compiler would keep its functions in the program.
  template <class Callback = std::function<void(const Hitch&)>>
  requires std::is_constructible_v<std::function<void(const Hitch&)>, Callback>
  void OnHitch(Callback&&) {}
  void SetEnabled(bool) {}
  bool enabled() const noexcept { return false; }

  const FrameRecord& last() const { return none_; }
  FrameHistory history() const { return {nullptr, 0, 0, 0}; }
  FrameRecord last(FrameId) const { return {}; }
  std::vector<FrameRecord> history(FrameId) const { return {}; }
  std::vector<ZoneStats> zones() const { return {}; }
  std::vector<Hitch> hitches() const { return {}; }
  void WorkerTotals(SlotTotals& out) const noexcept { out = {}; }
  FrameStats Stats() const { return {}; }
  std::string FormatZones() const { return {}; }

  size_t size() const { return 0; }
  std::string_view name(size_t) const { return ""; }
  std::string_view reason(size_t) const { return detail::kOffReason; }
  ReadPath path(size_t) const { return ReadPath::kGroupRead; }

 private:
  FrameRecord none_;  // A member: a static object would be a symbol of the program.
};

}  // namespace PERFKIT_NAMESPACE
