// A call stack that was unwound: its frames, and why unwinding stopped.
#pragma once

#include "perfkit/detail/library_only.h"

#include <cstdint>
#include <string_view>

namespace perfkit {

// Why unwinding stopped. There is at least one frame, even if its pc lies in no known mapping; except with
// kNoRegisters, without room for one, and if LiveUnwinder::CurrentStack can't find its own caller.
enum class StackEnd : uint8_t {
  kRoot,         // Complete: the last frame has no caller (_start, clone, the first function of a fiber).
  kTruncated,    // The stack exceeds the bytes that were copied.
  kNoMapping,    // A pc lies in no known executable mapping: the caller's, which is not among the frames, or that of
                 // the only frame.
  kNoInfo,       // The last frame has neither call frame information nor a frame pointer; or it is in libgcc, which is
                 // about to jump to a landing pad and has overwritten what its information refers to.
  kUnreadable,   // The caller's frame would be outside of the stack: damaged, or the memory was not present.
  kNoProgress,   // The caller's frame would not be above its callee's: damaged.
  kLimit,        // There are more frames than room for them, or than a walk may leave out (LiveUnwinder).
  kNoStack,      // No byte of the stack was copied: not asked for, or not present. There is one frame.
  kNoRegisters,  // The sample has no registers of 64-bit user code, e.g. that of a kernel thread. There is no frame.
  kNotReady,     // The next pc lies in a module whose unwind tables were still to be built: soon after Session::Start.
};
// Returns "root", "truncated", ….
std::string_view StackEndName(StackEnd end);

// A call that has not returned.
struct StackFrame {
  // For the innermost frame and for code that a signal interrupted: the next instruction to execute. For all others:
  // the return address, which is after the call.
  uint64_t pc = 0;
  bool is_return_address = false;
  // Not confirmed, because the callee has no call frame information: found by its frame pointer, or because the word at
  // its stack pointer is an address after a call, which is probably its return address.
  bool is_guess = false;
  // Taken from an earlier stack of the same thread, because this sample's copy of the stack ends before it:
  // UnwinderOptions::stitch_bytes.
  bool is_stitched = false;
  bool is_kernel = false;  // Code of the kernel: KernelFrames.

  // Returns an address inside the instruction that was executing: the one to look up symbols and lines for.
  uint64_t code() const { return pc - (is_return_address ? 1 : 0); }
  bool operator==(const StackFrame&) const = default;
};

// The result of unwinding one stack.
//
//   f0 f1 f2 … f599 │ f9600 … f9999     room for 1,000 frames, 400 of them for the outermost calls: `outer` is 400,
//                                       and 9,000 are omitted
struct UnwoundStack {
  uint32_t frames = 0;    // Number of frames written.
  uint32_t guesses = 0;   // Those of them that are guesses.
  uint32_t stitched = 0;  // Those of them that are stitched: the outermost ones.
  StackEnd end = StackEnd::kNoRegisters;
  // Of a dump: bytes from the stack pointer to the outermost frame, the size of a dump that holds these frames
  // (StackUse). 0 for live stacks.
  uint32_t stack_bytes = 0;
  // Frames that were found and left out, because there was no room: between frames [0, frames - outer) and the last
  // `outer` ones.
  uint32_t omitted = 0;
  uint32_t outer = 0;  // 0 if `omitted` is 0.

  // Returns true if the stack reaches its root and no frame was left out.
  bool complete() const { return end == StackEnd::kRoot && omitted == 0; }
  bool operator==(const UnwoundStack&) const = default;
};

}  // namespace perfkit
