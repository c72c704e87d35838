// What one thread has counted in each node: written by that thread alone, read by all.
//
// Each word is exact at some moment of the reading. The words of one node are not of the same moment, unless nothing is
// switched meanwhile. If an interval has no count of an event, the event is marked missing before its sum changes. So a
// reader never takes an incomplete sum for a complete one.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/count/frame/counted_events.h"

namespace perfkit::count {

// A copy of the sums of one node.
struct NodeTotal {
  Sums sums;
  uint64_t wait_ticks = 0, migrations = 0;  // Of names of tasks.
};

class NodeSums {
 public:
  // All words are allocated, and touched, here.
  NodeSums(size_t nodes, const CountedEvents& events)
      : events_(events), stride_(kValues + events.size() + 2 * Multiplexable(events)), words_(nodes * stride_) {}

  void SetGapped(uint32_t gapped) { events_.SetGapped(gapped); }
  const CountedEvents& events() const { return events_; }

  // Adds what was counted between two snapshots to `node` and, unless it is nullptr, to `task`. On the writing thread.
  [[gnu::always_inline]] void Add(size_t node, const Snapshot& begin, const Snapshot& end, Sums* task) noexcept {
    uint64_t* const at = &words_[node * stride_];
    if (events_.HasRest(begin, end)) [[unlikely]]
      AddRest(at, begin, end, task);
    const uint64_t ticks = end.ticks - begin.ticks;
    Set(at[kTicks], at[kTicks] + ticks);
    if (task != nullptr) task->ticks += ticks;
    const size_t events = events_.size();
    for (size_t i = 0; i < events; ++i) {
      const uint64_t counted = end.values[i] - begin.values[i];
      Set(at[kValues + i], at[kValues + i] + counted);
      if (task != nullptr) task->values[i] += counted;
    }
  }
  void AddCall(size_t node) noexcept { Set(words_[node * stride_ + kCalls], words_[node * stride_ + kCalls] + 1); }
  void AddWait(size_t node, uint64_t ticks) noexcept {
    Set(words_[node * stride_ + kWait], words_[node * stride_ + kWait] + ticks);
  }
  void AddMigration(size_t node) noexcept {
    Set(words_[node * stride_ + kMigrations], words_[node * stride_ + kMigrations] + 1);
  }

  // Adds all sums of a thread that has ended. Requires that neither is changed meanwhile.
  void Merge(const NodeSums& other) {
    for (size_t w = 0; w < words_.size(); ++w) {
      const uint64_t theirs = Get(other.words_[w]);
      Set(words_[w], w % stride_ == kMissing ? words_[w] | theirs : words_[w] + theirs);
    }
  }

  // Adds a node's sums to `total`. Any thread.
  void ReadInto(size_t node, NodeTotal& total) const noexcept {
    const uint64_t* const at = &words_[node * stride_];
    Sums& sums = total.sums;
    sums.calls += Get(at[kCalls]);
    sums.ticks += Get(at[kTicks]);
    total.wait_ticks += Get(at[kWait]);
    total.migrations += Get(at[kMigrations]);
    for (size_t i = 0; i < events_.size(); ++i) sums.values[i] += Get(at[kValues + i]);
    const uint64_t* word = at + kValues + events_.size();
    for (uint32_t left = events_.multiplexable(); left != 0; left &= left - 1, word += 2) {
      const size_t i = static_cast<size_t>(__builtin_ctz(left));
      sums.times[i].enabled_ns += Get(word[0]);
      sums.times[i].running_ns += Get(word[1]);
    }
    sums.missing |= static_cast<uint32_t>(Get(at[kMissing]));  // Last: see Set.
  }

 private:
  enum Word : size_t { kMissing, kCalls, kTicks, kWait, kMigrations, kValues };

  // What CountedEvents::AddRest adds.
  [[gnu::noinline]] void AddRest(uint64_t* at, const Snapshot& begin, const Snapshot& end, Sums* task) noexcept {
    if (const uint32_t missing = events_.MissingBetween(begin, end); missing != 0) {
      Set(at[kMissing], at[kMissing] | missing);
    }
    uint64_t* word = at + kValues + events_.size();
    for (uint32_t left = events_.multiplexable(); left != 0; left &= left - 1, word += 2) {
      const size_t i = static_cast<size_t>(__builtin_ctz(left));
      Set(word[0], word[0] + (end.times[i].enabled_ns - begin.times[i].enabled_ns));
      Set(word[1], word[1] + (end.times[i].running_ns - begin.times[i].running_ns));
    }
    if (task != nullptr) events_.AddRest(task->missing, task->times.data(), begin, end);
  }
  static size_t Multiplexable(const CountedEvents& events) {
    return static_cast<size_t>(__builtin_popcount(events.multiplexable()));
  }
  // Release, acquire: pair with each other. A reader that sees a sum also sees what was marked missing before it.
  static void Set(uint64_t& word, uint64_t value) noexcept { __atomic_store_n(&word, value, __ATOMIC_RELEASE); }
  static uint64_t Get(const uint64_t& word) noexcept { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); }

  CountedEvents events_;
  size_t stride_;
  std::vector<uint64_t> words_;
};

}  // namespace perfkit::count
