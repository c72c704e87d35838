// A small piece of work with known effects, for events to count: whoever stays 0 while it runs does not count.
#pragma once

#include <cstdint>
#include <string_view>

namespace perfkit::doctor {

// The parts of the work, each of which is sure to move some events.
enum class Work : uint8_t {
  kNothing,  // no part is sure to move it
  kLoop,     // arithmetic with a branch that nobody can predict
  kPages,    // first touches of fresh pages
  kReads,    // reads of memory, all over these pages
  kSleep,    // a sleep: a switch away and back
  kCalls,    // system calls (getpid)
  kWrites,   // stores to the watched word
  kProbe,    // calls of the probed function
};

// "a loop", "page touches": for messages and lists. "" for kNothing.
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
