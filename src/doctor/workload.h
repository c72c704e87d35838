// A small piece of work with known effects: an event that must be raised by it and stays 0 does not count.
#pragma once

#include <cstdint>
#include <string_view>

namespace perfkit::doctor {

// The pieces of the workload. Each is certain to raise some events.
enum class Work : uint8_t {
  kNothing,  // No part raises the event for certain.
  kLoop,     // Arithmetic with an unpredictable branch.
  kPages,    // First touches of new pages.
  kReads,    // Reads of memory, all over these pages.
  kSleep,    // A sleep: a switch away and back.
  kCalls,    // System calls (getpid).
  kWrites,   // Stores to the watched word.
  kProbe,    // Calls of the probed function.
  kMemory,   // Calls of malloc.
};

// Returns "a loop", "page touches": for messages and lists. Returns "" for kNothing.
std::string_view WorkName(Work work);

class Workload {
 public:
  // Does all parts once, in about 1 ms.
  void Run();

  // The word that the work writes to, and the function that it calls: for a breakpoint and a uprobe.
  const void* watched_word() const { return const_cast<const uint32_t*>(&watched_word_); }
  static const void* ProbedFunction();

 private:
  alignas(8) volatile uint32_t watched_word_ = 0;
};

}  // namespace perfkit::doctor
