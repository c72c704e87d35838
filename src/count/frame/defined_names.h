// The zones and frames that a program has defined by name.
//
// Definitions are added, and never moved or removed, so they can be read without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>

#include "src/count/frame/frame_sequence.h"

namespace perfkit::count {

// Call DefineZone, DefineFrame and Disown with FrameCounterImpl::mutex_ held. The other functions are thread-safe.
class DefinedNames {
 public:
  static constexpr uint32_t kMaxSequences = 16;  // With the main one, which is not stored.
  static constexpr size_t kMaxZones = 65'536;

  // `history_frames`: length of each sequence's history.
  explicit DefinedNames(size_t history_frames) : history_frames_(history_frames) {}

  // Returns the same id for the same name; of names beyond kMaxZones, that of "(more names)".
  ZoneId DefineZone(std::string_view name);
  // Returns an id without a sequence if there are kMaxSequences already.
  FrameId DefineFrame(std::string_view name, const ZoneShape& shape, uint64_t budget_ns);

  // Returns the first frame with this name; the main frame if there is none.
  FrameId FindFrame(std::string_view name) const;

  // Returns nullptr for the main frame, and for an id without a sequence.
  FrameSequence* sequence(FrameId id) const {
    // Acquire: pairs with the release in DefineFrame.
    return id.index != 0 && id.index < count_.load(std::memory_order_acquire) ? sequences_[id.index].get() : nullptr;
  }
  // Returns "" for the main frame. Requires that the sequence is defined.
  const char* sequence_name(size_t sequence) const { return sequence == 0 ? "" : sequences_[sequence]->name().c_str(); }
  // To be called when `thread` has ended: other threads may then mark the sequences that it owned.
  void Disown(const FrameThread& thread);

 private:
  struct NameHash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  size_t history_frames_;
  // Nodes do not move, so that an id can be the name's address.
  std::unordered_set<std::string, NameHash, std::equal_to<>> zones_;
  std::array<std::unique_ptr<FrameSequence>, kMaxSequences> sequences_;
  std::atomic<uint32_t> count_{1};  // Number of sequences, with the main one.
};

}  // namespace perfkit::count
