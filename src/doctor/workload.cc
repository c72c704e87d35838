// Does what workload.h says. Each part is large enough that its events can't be missed among what the process does
// besides, and all are written so that the compiler can't remove them.
#include "src/doctor/workload.h"

#include <stdlib.h>

#include <array>
#include <optional>

#include "src/sys/kernel.h"
#include "src/sys/mapping.h"
#include "src/sys/switches.h"

namespace perfkit::doctor {
namespace {

constexpr int kLoopRounds = 200'000;
// 1 MiB of 4 KiB pages: more than a first-level cache holds, so that random reads miss it, and 256 page faults.
constexpr size_t kPages = 256;
constexpr int kReads = 20'000;
constexpr int kCalls = 64;
constexpr int kWrites = 64;
constexpr int kProbes = 64;
constexpr int kAllocations = 64;

constexpr std::array<std::string_view, 9> kNames = {
    "",           "a loop",       "page touches",     "memory reads",
    "a sleep",    "system calls", "writes to a word", "calls of a function",
    "allocations"};

// Returns the next number of a sequence without a pattern (xorshift64, Marsaglia 2003).
uint64_t Next(uint64_t x) {
  x ^= x << 13;
  x ^= x >> 7;
  return x ^ x << 17;
}

uint64_t Loop() {
  uint64_t x = 88172645463325252u, odd = 0;
  for (int i = 0; i < kLoopRounds; ++i) {
    x = Next(x);
    if ((x & 1) != 0) {
      asm volatile("" : "+r"(odd));  // Keeps it a branch, which must be mispredicted half of the time.
      ++odd;
    }
  }
  return odd;
}

void TouchAndReadPages() {
  const size_t size = kPages * sys::PageSize();
  const std::optional<sys::Mapping> pages = sys::Mapping::Anonymous(size);
  if (!pages) return;
  volatile auto* const bytes = reinterpret_cast<unsigned char*>(pages->data());
  for (size_t page = 0; page < kPages; ++page) bytes[page * sys::PageSize()] = 1;
  uint64_t x = 88172645463325252u;
  for (int i = 0; i < kReads; ++i) {
    x = Next(x);
    static_cast<void>(bytes[x % size]);
  }
}

// Never inlined and never empty: the kernel puts its breakpoint on the first instruction.
[[gnu::noinline]] void ProbedFunctionBody() { asm volatile("nop" ::: "memory"); }

// Through a volatile pointer: otherwise the compiler drops each pair.
void Allocate() {
  void* (*volatile allocate)(size_t) = ::malloc;
  for (int i = 0; i < kAllocations; ++i) ::free(allocate(1));
}

}  // namespace

std::string_view WorkName(Work work) { return kNames[static_cast<size_t>(work)]; }

void Workload::Run() {
  volatile uint64_t keep = Loop();
  static_cast<void>(keep);
  TouchAndReadPages();
  sys::SwitchAway();
  for (int i = 0; i < kCalls; ++i) sys::kernel().getpid();
  for (int i = 0; i < kWrites; ++i) watched_word_ = static_cast<uint32_t>(i);
  for (int i = 0; i < kProbes; ++i) ProbedFunctionBody();
  Allocate();
}

const void* Workload::ProbedFunction() { return reinterpret_cast<const void*>(&ProbedFunctionBody); }

}  // namespace perfkit::doctor
