// Counting a region: the difference of two snapshots, added up.
//
//   perfkit::ScopeTotals total;
//   for (...) { perfkit::CounterScope scope(*set, total);  work(); }
//   fputs(perfkit::FormatTable(*set, total).c_str(), stdout);
#pragma once

#include "perfkit/count.h"

namespace perfkit {

// Sums over scopes of one set. Plain data, for one thread at a time; totals of several threads' sets of the same
// events add up with Merge.
class ScopeTotals {
 public:
  // Adds what lies between two snapshots of `reader`. A pair that spans two threads adds nothing but to cross_thread().
  void Add(const CounterReader& reader, const Snapshot& begin, const Snapshot& end) noexcept {
    if (begin.other_thread || end.other_thread) [[unlikely]] {
      ++cross_thread_;
      return;
    }
    ++scopes_;
    shared_ = shared_ | CounterReader::SharedValidity(begin, end);
    missing_ |= reader.MissingBetween(begin, end);
    fallback_ |= begin.fallback | end.fallback;
    for (size_t i = 0; i < reader.size(); ++i) values_[i] += end.values[i] - begin.values[i];
    for (uint32_t multiplexable = reader.multiplexable(); multiplexable != 0; multiplexable &= multiplexable - 1) {
      const size_t i = static_cast<size_t>(__builtin_ctz(multiplexable));
      times_[i].enabled_ns += end.times[i].enabled_ns - begin.times[i].enabled_ns;
      times_[i].running_ns += end.times[i].running_ns - begin.times[i].running_ns;
    }
  }

  void Merge(const ScopeTotals& other) noexcept;

  // Event `i` of `reader` over all scopes. not_counted when any scope lacked it: a sum with a hole is no sum.
  Count count(const CounterReader& reader, size_t i) const noexcept;

  uint64_t scopes() const { return scopes_; }
  // Scopes that ended on another thread than they began on (fibers, coroutines), and so have no number.
  uint64_t cross_thread() const { return cross_thread_; }

 private:
  std::array<uint64_t, kMaxEvents> values_{};
  std::array<Snapshot::Times, kMaxEvents> times_{};
  Validity shared_;
  uint32_t missing_ = 0;
  uint32_t fallback_ = 0;
  uint64_t scopes_ = 0;
  uint64_t cross_thread_ = 0;
};

// From construction to destruction. Both ends must be on the thread that `reader` counts.
class CounterScope {
 public:
  CounterScope(const CounterReader& reader, ScopeTotals& total) noexcept : reader_(reader), total_(total) {
    reader_.Read(begin_);
  }
  ~CounterScope() {
    Snapshot end;
    reader_.Read(end);
    total_.Add(reader_, begin_, end);
  }
  CounterScope(const CounterScope&) = delete;
  CounterScope& operator=(const CounterScope&) = delete;

 private:
  const CounterReader& reader_;
  ScopeTotals& total_;
  Snapshot begin_;
};

}  // namespace perfkit
