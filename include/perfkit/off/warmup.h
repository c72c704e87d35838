// Warmup with PERFKIT_ENABLE=0. Included by warmup.h; do not include it directly.
#pragma once

#include "perfkit/warmup.h"

namespace PERFKIT_NAMESPACE {

class Warmup {
 public:
  explicit Warmup(std::span<const EventSpec>) {}
  explicit Warmup(std::initializer_list<EventSpec>) {}
  Warmup(Warmup&&) noexcept {}
  Warmup& operator=(Warmup&&) noexcept { return *this; }
  ~Warmup() {}  // A variable with a destructor counts as used.

  void Cooldown() noexcept {}
  size_t size() const { return 0; }
};

}  // namespace PERFKIT_NAMESPACE
