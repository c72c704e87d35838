// The stack of the same registers and memory, by both unwinders: as a sample's and as a live one.
#pragma once

#include <pthread.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/live_unwinder.h"
#include "perfkit/unwinder.h"
#include "tests/unwind/dwarf/sampled/hand_sample.h"

namespace perfkit::testing {

struct BareStack {
  UnwoundStack stack;
  std::vector<StackFrame> frames;

  std::string Describe() const {
    std::string text(StackEndName(stack.end));
    for (const StackFrame& frame : frames) text += absl::StrFormat(" %s%x", frame.is_guess ? "?" : "", frame.pc);
    return text;
  }
};

inline uint64_t EndOfThisStack() {
  pthread_attr_t attributes;
  void* begin = nullptr;
  size_t size = 0;
  REQUIRE(pthread_getattr_np(pthread_self(), &attributes) == 0);
  pthread_attr_getstack(&attributes, &begin, &size);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<uint64_t>(begin) + size;
}

// Both stacks of the same registers and memory.
struct BareLooks {
  BareLooks() { REQUIRE(by_samples.AddProcess(getpid()).ok()); }

  void Take(const ucontext_t& context) {
    live.frames.resize(100);
    live.stack = by_thread.InterruptedStack(&context, live.frames);
    live.frames.resize(live.stack.frames);
    const auto at = reinterpret_cast<uint64_t>(&context);
    const unwind::StackBytes bytes(at, std::as_bytes(std::span(&context, 1)));
    const auto registers = unwind::FromContext<ThisMachine>(bytes, at);
    const uint64_t sp = registers.ValueOr0(ThisMachine::kSp);
    constexpr uint64_t kBytes = 16384;
    const HandSample sample(static_cast<uint32_t>(getpid()), registers,
                            std::string(reinterpret_cast<const char*>(sp), std::min(stack_end - sp, kBytes)), 2,
                            stack_end - sp > kBytes);
    sampled.frames.resize(100);
    sampled.stack = by_samples.Unwind(sample.sample(), sampled.frames);
    sampled.frames.resize(sampled.stack.frames);
  }

  // Returns the stack, which is the same by both ways.
  BareStack Same() const {
    INFO("sampled: " << sampled.Describe() << "\nlive: " << live.Describe());
    CHECK(sampled.frames == live.frames);
    CHECK(sampled.stack.end == live.stack.end);
    return live;
  }

  Unwinder by_samples;
  LiveUnwinder by_thread;
  BareStack sampled, live;
  uint64_t stack_end = EndOfThisStack();
};

}  // namespace perfkit::testing
