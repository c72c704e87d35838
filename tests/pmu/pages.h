// Single events with their pages, read by register and by the kernel: what tests of user-space reads share.
#pragma once

#include <unistd.h>

#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "src/event/attr.h"
#include "src/open/live_ring.h"
#include "src/sys/files.h"
#include "tests/pmu/pmu.h"

namespace perfkit::testing {

// What makes arm64 lend a register to an event that has no terms: config1 bit 1. Other PMUs may use the bit otherwise.
#if defined(__aarch64__)
inline constexpr uint64_t kReadable = 2;
#else
inline constexpr uint64_t kReadable = 0;
#endif

// An event of this thread with its page, as its text asks for it.
inline open::LiveRing OpenPage(const std::string& text, uint64_t config1 = 0) {
  const absl::StatusOr<EventConfig> event = ParseEvent(text);
  INFO(event.status().ToString());
  REQUIRE(event.ok());
  open::OpenRequest request;
  request.attr = event::ToAttr(*event, event->parts.front());
  request.attr.config1 |= config1;
  request.may_restrict_to_user = false;
  request.asked = text;
  absl::StatusOr<open::LiveRing> ring = open::LiveRing::Open(request, 0, sys::ReadRights());
  INFO(ring.status().ToString());
  REQUIRE(ring.ok());
  return *std::move(ring);
}

inline uint64_t ByKernel(const open::LiveRing& ring) {
  uint64_t value = 0;
  REQUIRE(read(ring.fd(), &value, sizeof(value)) == sizeof(value));
  return value;
}

inline std::optional<uint64_t> ByRegister(const open::LiveRing& ring) {
  UserCount count;
  if (!ReadUserCount(*ring.page(), count)) return std::nullopt;
  return count.value;
}

// Register, kernel, register: each must lie between its neighbours, to `slack`. How many did not, or could not be read.
struct Disagreements {
  int wrong = 0, unreadable = 0;
};
inline Disagreements Compare(const open::LiveRing& ring, int times, uint64_t rounds, uint64_t slack = 0) {
  Disagreements found;
  uint64_t last = 0;
  for (int i = 0; i < times; ++i) {
    Loop(rounds);
    const std::optional<uint64_t> before = ByRegister(ring);
    const uint64_t kernel = ByKernel(ring);
    const std::optional<uint64_t> after = ByRegister(ring);
    if (!before || !after) {
      ++found.unreadable;
      continue;
    }
    if (*before + slack < last || kernel + slack < *before || *after + slack < kernel) ++found.wrong;
    last = *after;
  }
  return found;
}

}  // namespace perfkit::testing
