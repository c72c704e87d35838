// Where a session finds what takes whole stacks: a table that is there only if the component perfkit::dwarf is linked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "perfkit/sample.h"
#include "perfkit/sampler_options.h"
#include "perfkit/stack_frame.h"
#include "perfkit/symbolizer.h"

namespace perfkit {

// Where a thread is blocked, and what lies at its stack pointer.
struct BlockedStack {
  uint32_t pid = 0, tid = 0;
  uint64_t pc = 0, sp = 0;
  std::span<const std::byte> copy;  // at most kMaxCopy bytes

  static constexpr size_t kMaxCopy = 48 << 10;  // a record's size has 16 bits
};

// For remembering complete stacks, from which truncated ones are completed (UnwinderOptions::stitch_bytes).
inline constexpr size_t kStitchBytes = 8 << 20;

// Unwinds copies of stacks. Not thread-safe.
class StackUnwinder {
 public:
  virtual ~StackUnwinder() = default;

  // Takes what is mapped in a process now: instead of records, for who gets none.
  virtual absl::Status AddProcess(uint32_t pid) = 0;
  // Takes the records of what is mapped.
  virtual void Add(const RawRecord& record, const SampleLayout& layout) = 0;
  // The stack of a sample of CallStack::UserDump.
  virtual UnwoundStack Unwind(const Sample& sample, std::span<StackFrame> frames) = 0;
  // The stack of a thread that is blocked, from a copy of its memory.
  virtual UnwoundStack UnwindBlocked(const BlockedStack& blocked, std::span<StackFrame> frames) = 0;
};

// A capital letter, so that a shared library exports it (cmake/perfkit.map).
struct StackHooks {
  std::unique_ptr<unwind::LiveWalker> (*live)();
  // The same, but with the tables of most modules left to the first Drain.
  std::unique_ptr<unwind::LiveWalker> (*brief_live)();
  std::unique_ptr<StackUnwinder> (*unwinder)(size_t stitch_bytes);
  std::unique_ptr<symbolize::LineSource> (*lines)(size_t cache_bytes);
};

// Defined by src/session/dwarf/hooks.cc. Weak: its address is nullptr if it is not linked. The component's CMake
// target makes the linker look for it.
extern const StackHooks StackHookTable __attribute__((weak));

}  // namespace perfkit
