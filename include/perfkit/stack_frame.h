// A call stack that was unwound: its frames, and why unwinding stopped.
#pragma once

#include <cstdint>
#include <string_view>

namespace perfkit {

// Why a stack has no more frames than it has. A first frame is there even where nothing is known to be mapped.
enum class StackEnd : uint8_t {
  kRoot,         // complete: the last frame has no caller (_start, clone)
  kTruncated,    // the stack goes on beyond the bytes that were copied
  kNoMapping,    // the next pc, which is not among the frames, lies where nothing executable is known to be mapped
  kNoInfo,       // nothing says how the last frame's caller is found: no call frame information, no frame pointer
  kUnreadable,   // the caller would have to be where no stack is: damaged, or the memory was not there
  kNoProgress,   // the caller's frame would not lie above its callee's: damaged
  kLimit,        // there are more frames than there was room for
  kNoStack,      // no byte of the stack was copied: it was not asked for, or not in memory; one frame
  kNoRegisters,  // the sample holds no registers of 64-bit user code (a kernel thread has none): no frame at all
};
// "root", "truncated", …
std::string_view StackEndName(StackEnd end);

// A call that had not returned.
struct StackFrame {
  // The innermost frame's, and that of code that a signal interrupted: the instruction that was to be executed next.
  // All others': the return address, after the call.
  uint64_t pc = 0;
  bool is_return_address = false;
  // Found by following a frame pointer that nothing vouches for: from code without call frame information.
  bool is_guess = false;
  // Not found in this sample's copy of the stack, which ends below it, but in an earlier one of the thread, which had
  // the call that this one called: UnwinderOptions::stitch_bytes.
  bool is_stitched = false;

  // A byte of the instruction that was under way: what symbols and lines have to be asked for.
  uint64_t code() const { return pc - (is_return_address ? 1 : 0); }
  bool operator==(const StackFrame&) const = default;
};

struct UnwoundStack {
  uint32_t frames = 0;    // that were found, innermost first
  uint32_t guesses = 0;   // of these
  uint32_t stitched = 0;  // of these: the outermost ones
  StackEnd end = StackEnd::kNoRegisters;
  // Of the stack, from its pointer to the outermost frame: what a dump has to have for these frames (StackUse).
  uint32_t stack_bytes = 0;

  bool complete() const { return end == StackEnd::kRoot; }
  bool operator==(const UnwoundStack&) const = default;
};

}  // namespace perfkit
