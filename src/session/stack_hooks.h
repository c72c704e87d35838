// The functions by which a session gets whole stacks: a table that exists only if the component perfkit::dwarf is
// linked.
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

// Where a thread is blocked, and a copy of its stack.
struct BlockedStack {
  uint32_t pid = 0, tid = 0;
  uint64_t pc = 0, sp = 0;
  std::span<const std::byte> copy;  // at most kMaxCopy bytes

  static constexpr size_t kMaxCopy = 48 << 10;  // a record's size has 16 bits
};

// Memory for complete stacks, from which truncated ones are stitched (UnwinderOptions::stitch_bytes).
inline constexpr size_t kStitchBytes = 8 << 20;

// Unwinds copies of stacks. Not thread-safe.
class StackUnwinder {
 public:
  virtual ~StackUnwinder() = default;

  // Reads what is mapped in a process now, for callers that have no records of it.
  virtual absl::Status AddProcess(uint32_t pid) = 0;
  // Adds a record of mappings. Ignores other records.
  virtual void Add(const RawRecord& record, const SampleLayout& layout) = 0;
  // Unwinds the stack of a sample of CallStack::UserDump.
  virtual UnwoundStack Unwind(const Sample& sample, std::span<StackFrame> frames) = 0;
  // Unwinds the stack of a blocked thread, from a copy of its memory.
  virtual UnwoundStack UnwindBlocked(const BlockedStack& blocked, std::span<StackFrame> frames) = 0;
};

// Capitalized, so that a shared library exports the table (cmake/perfkit.map).
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

// Why there are no stacks if it is not linked, and the remedy. A linker drops a component that only -l names.
inline constexpr char kNoStackHooks[] =
    "the component perfkit::dwarf is not linked. Remedy: link it, by its CMake target or pkg-config";

}  // namespace perfkit
