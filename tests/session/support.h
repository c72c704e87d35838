// What tests of sessions share.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <thread>
#include <vector>

#include "perfkit/session.h"
#include "src/profile/stolen_time.h"
#include "src/sys/clock.h"

namespace perfkit::session {

inline constexpr uint64_t kMs = 1'000'000;  // in nanoseconds

// Runs for so long by the thread's own clock.
[[gnu::noinline]] inline void Spin(std::chrono::nanoseconds cpu) {
  const uint64_t end_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID) + static_cast<uint64_t>(cpu.count());
  while (sys::ClockNs(CLOCK_THREAD_CPUTIME_ID) < end_ns) {
  }
}

// Touches fresh pages: each is a fault.
inline void Fault(size_t pages) {
  constexpr size_t kPage = 4096;
  void* const memory = mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  madvise(memory, pages * kPage, MADV_NOHUGEPAGE);
  for (size_t i = 0; i < pages; ++i) static_cast<volatile char*>(memory)[i * kPage] = 1;
  munmap(memory, pages * kPage);
}

// Threads that come and go, each with work of its own: kChurned in each round.
inline constexpr int kChurned = 4;
inline void Churn(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kChurned; ++i) {
      threads.emplace_back([i] {
        Fault(20);
        Spin(std::chrono::microseconds(500 * i));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

// The laws of every profile: valid tables, and each event's samples are what the sampler has delivered.
inline void CheckLaws(const Profile& profile) {
  CHECK(profile.Check() == absl::OkStatus());
  for (size_t i = 0; i < profile.events.size(); ++i) {
    const ProfileEvent& event = profile.events[i];
    if (event.name == kOffCpuEvent) continue;
    INFO(event.name);
    CHECK(profile.Total(i).samples == event.accounting.delivered);
    CHECK(profile.Total(i).weight == event.accounting.represented);
    if (event.unit == ProfileUnit::kCount && !event.accounting.counted_is_lower_bound) {
      CHECK(event.accounting.accounted() == event.accounting.counted);
    }
  }
}

// Whether a function with `part` in its name is anywhere in the stack.
inline bool HasFunction(const Profile& profile, uint32_t stack, std::string_view part) {
  for (; stack != ProfileStack::kRoot; stack = profile.stacks[stack].parent) {
    for (const ProfileCall& call : profile.CallsAt(profile.stacks[stack].location)) {
      if (profile.strings[call.function].find(part) != std::string::npos) return true;
    }
  }
  return false;
}

inline std::vector<SampledEvent> ClockAndFaults() {
  return {{.event = "task-clock", .rate = Period{500'000}}, {.event = "page-faults", .rate = Period{1}}};
}

// The counters of a profile that a FrameCounter counted: without the time that a hypervisor took.
inline std::vector<ProfileCounter> FrameCounts(const Profile& profile) {
  std::vector<ProfileCounter> counts;
  for (const ProfileCounter& counter : profile.counters) {
    if (profile.strings[counter.name] != profile::kStolenCounter) counts.push_back(counter);
  }
  return counts;
}

}  // namespace perfkit::session
