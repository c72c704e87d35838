// Scopes with PERFKIT_ENABLE=0. Included by scope.h; do not include it directly.
#pragma once

#include "perfkit/scope.h"

namespace PERFKIT_NAMESPACE {

class ScopeTotals {
 public:
  void Add(const CounterReader&, const Snapshot&, const Snapshot&) noexcept {}
  void Merge(const ScopeTotals&) noexcept {}
  Count count(const CounterReader&, size_t) const noexcept { return {}; }
  uint64_t scopes() const { return 0; }
  uint64_t cross_thread() const { return 0; }
};

class CounterScope {
 public:
  CounterScope(const CounterReader&, ScopeTotals&) noexcept {}
  ~CounterScope() {}  // A variable with a destructor counts as used.
  CounterScope(const CounterScope&) = delete;
  CounterScope& operator=(const CounterScope&) = delete;
};

}  // namespace PERFKIT_NAMESPACE
