// Counts regions of code: sums of the differences of two snapshots.
//
//   perfkit::ScopeTotals total;
//   for (...) { perfkit::CounterScope scope(*set, total);  work(); }
//   fputs(perfkit::FormatTable(*set, total).c_str(), stdout);   // format.h
#pragma once

#include "perfkit/count.h"

namespace PERFKIT_NAMESPACE {

#if PERFKIT_ENABLE
// Sums over scopes of one set. Not thread-safe: any thread may call it, one at a time. A signal handler must not use
// the totals of a scope that it interrupts.
class ScopeTotals {
 public:
  // Adds the difference of two snapshots of `reader`. If one was read on another thread than the set counts, only
  // increments cross_thread().
  void Add(const CounterReader& reader, const Snapshot& begin, const Snapshot& end) noexcept {
    if (begin.other_thread || end.other_thread) [[unlikely]] {
      ++cross_thread_;
      return;
    }
    ++scopes_;
    AddKinds(reader.kinds());
    const bool usual = begin.epoch == end.epoch && begin.cpu == end.cpu &&
                       (begin.missing | end.missing | begin.fallback | end.fallback) == 0;
    if (!usual) [[unlikely]]
      AddFlags(reader, begin, end);
    for (size_t i = 0; i < reader.size(); ++i) values_[i] += end.values[i] - begin.values[i];
    for (uint32_t multiplexable = reader.multiplexable(); multiplexable != 0; multiplexable &= multiplexable - 1) {
      const size_t i = static_cast<size_t>(__builtin_ctz(multiplexable));
      times_[i].enabled_ns += end.times[i].enabled_ns - begin.times[i].enabled_ns;
      times_[i].running_ns += end.times[i].running_ns - begin.times[i].running_ns;
    }
  }

  // Adds the totals of another set of the same events, e.g. another thread's. A flag of one is a flag of the sum.
  void Merge(const ScopeTotals& other) noexcept;

  // Returns the sum of event `i` of `reader` over all scopes; not counted if any scope has no count of it, if the sets
  // count it in ways whose sum has no meaning (CountKind::mixed), or if there are no scopes (kOtherThread if all were
  // cross-thread).
  Count count(const CounterReader& reader, size_t i) const noexcept;

  // Returns the number of scopes that were added.
  uint64_t scopes() const { return scopes_; }
  // Returns how many scopes began or ended on another thread than the set counts (fibers, coroutines). They are not
  // counted.
  uint64_t cross_thread() const { return cross_thread_; }

 private:
  void AddFlags(const CounterReader& reader, const Snapshot& begin, const Snapshot& end) noexcept {
    shared_ = shared_ | CounterReader::SharedValidity(begin, end);
    missing_ |= reader.MissingBetween(begin, end);
    fallback_ |= begin.fallback | end.fallback;
  }

  // All at once: compilers do not vectorise a loop over bytes that may overlap, and that would be a third of a scope.
  void AddKinds(const std::array<CountKind, kMaxEvents>& kinds) noexcept {
    __extension__ using Flags = unsigned __int128;
    static_assert(sizeof(Flags) == sizeof(kinds_));
    Flags sum, more;
    __builtin_memcpy(&sum, kinds_.data(), sizeof(sum));
    __builtin_memcpy(&more, kinds.data(), sizeof(more));
    sum |= more;
    __builtin_memcpy(static_cast<void*>(kinds_.data()), &sum, sizeof(sum));
  }

  std::array<uint64_t, kMaxEvents> values_{};
  std::array<Snapshot::Times, kMaxEvents> times_{};
  Validity shared_;
  uint32_t missing_ = 0;
  uint32_t fallback_ = 0;
  std::array<CountKind, kMaxEvents> kinds_{};  // Those of all readers.
  uint64_t scopes_ = 0;
  uint64_t cross_thread_ = 0;
};

// Counts from construction to destruction. With Target::ThisThread, a scope that begins or ends on another thread is
// not counted (ScopeTotals::cross_thread). `reader` and `total` must outlive it.
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
#endif

}  // namespace PERFKIT_NAMESPACE

#if !PERFKIT_ENABLE
#include "perfkit/off/scope.h"
#endif
