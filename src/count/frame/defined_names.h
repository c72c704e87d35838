// The zones and frames that a program has defined by name.
//
// Definitions are added, and never moved or removed, so they can be read without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "src/count/frame/frame_chain.h"

namespace perfkit::count {

// Call DefineZone, DefineFrame and Disown with FrameCounterImpl::mutex_ held. The other functions are thread-safe.
class DefinedNames {
 public:
  static constexpr uint32_t kMaxChains = 16;  // The main one is not stored.

  // `history_frames`: of each chain.
  explicit DefinedNames(size_t history_frames) : history_frames_(history_frames) {}

  // Returns the same id for the same name.
  ZoneId DefineZone(std::string_view name);
  // Returns an id that stands for nothing if there are too many.
  FrameId DefineFrame(std::string_view name, const ZoneShape& shape, uint64_t budget_ns);

  // Returns nullptr for the main frame, and for an id that stands for nothing.
  FrameChain* chain(FrameId id) const {
    // Acquire: pairs with the release in DefineFrame.
    return id.index != 0 && id.index < count_.load(std::memory_order_acquire) ? chains_[id.index].get() : nullptr;
  }
  // Returns "" for the main frame. Requires that the chain is defined.
  const char* chain_name(size_t chain) const { return chain == 0 ? "" : chains_[chain]->name().c_str(); }
  // The thread has ended: other threads may mark the chains that it owned.
  void Disown(const FrameThread& thread);

 private:
  size_t history_frames_;
  std::deque<std::string> zones_;
  std::array<std::unique_ptr<FrameChain>, kMaxChains> chains_;
  std::atomic<uint32_t> count_{1};  // Of chains.
};

}  // namespace perfkit::count
