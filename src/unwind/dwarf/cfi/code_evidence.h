// What code itself says where call frame information says nothing.
//
//   PLT stubs         linkers other than GNU's write no information for them; their bytes are always the same
//   the entry point   the kernel jumps to it, so it has no caller
//   a planted return  no call precedes it, and a function begins at it: makecontext's __start_context
//   a fiber's entry   Boost.Context's plants the return address of the fiber's function; its bytes are always the same
//   the end of rbp    code that sets rbp to 0 marks the outermost frame by it (AMD64 ABI, 3.4.1), or just uses rbp
//   a thread's end    code that ends the thread with what a function returned to it, as musl's __clone
//   a signal's end    musl's and others' __restore_rt, which calls rt_sigreturn
//   an installation   of a landing pad, by libgcc, which has overwritten its frame: the code after the second last call
//   a call before     what the word at sp points after, so that word is probably a leaf's return address: a guess
//
// Consulted only when a rule is not cached, and for frames without information. All functions are async-signal-safe.
#pragma once

#include <cstdint>

#include "src/base/cursor.h"
#include "src/base/in_handler.h"
#include "src/elf/image.h"
#include "src/unwind/dwarf/cfi/cfi.h"
#include "src/unwind/rule.h"

namespace perfkit::unwind {

// A copy of code: the 16 bytes, aligned to 16, that contain an address, and the 16 bytes before and after them.
struct CodeWindow {
  static constexpr uint64_t kBlock = 16;

  // Returns the address of the first byte of the window around `address`.
  PERFKIT_IN_HANDLER static uint64_t BeginOf(uint64_t address) { return (address & ~(kBlock - 1)) - kBlock; }

  uint8_t bytes[3 * kBlock] = {};  // Zeros where nothing could be read.
};

// Returns the rule of the code at `address` by its bytes. kNone if they say nothing, and always on aarch64.
PERFKIT_IN_HANDLER Rule RuleByCode(const CodeWindow& code, uint64_t address);

// What a call instruction calls, as far as its bytes tell.
enum class CallKind : uint8_t {
  kNone,      // There is no call instruction.
  kDirect,    // Calls `target`.
  kIndirect,  // Calls what a register or memory contains.
};
struct CallBefore {
  CallKind kind = CallKind::kNone;
  uint64_t target = 0;
};

// Returns the call that ends right before `address`. Requires the window around `address` - 1.
PERFKIT_IN_HANDLER CallBefore FindCallBefore(const CodeWindow& code, uint64_t address);

// Returns true if the code at `address`, which the window is around, jumps to where a word in memory points, as PLT
// stubs do.
PERFKIT_IN_HANDLER bool IsJumpByMemory(const CodeWindow& code, uint64_t address);

// Returns true if a call of `called` can be one of the function that contains `pc`: it begins not far before.
PERFKIT_IN_HANDLER constexpr bool MayContain(uint64_t called, uint64_t pc) {
  constexpr uint64_t kLargestFunction = 64 << 10;  // In bytes; hand-written leaves are far smaller.
  return pc - called < kLargestFunction;
}

// Addresses of a module, before relocation.
struct AddressRange {
  uint64_t begin = 0, end = 0;

  PERFKIT_IN_HANDLER bool Holds(uint64_t address) const { return address - begin < end - begin; }
};

// Returns the address at which the kernel or the dynamic linker starts the file, before relocation; 0 if it is a
// library, whose header may name any address. Not async-signal-safe.
uint64_t EntryOf(const elf::Image& image);

// Maximum of bytes of code at an entry point. The dynamic linker of glibc 2.36 has 61.
inline constexpr uint64_t kMaxEntryCode = 64;
// Returns the code from `entry` on, up to the next function with information, at most kMaxEntryCode bytes. Empty if
// `entry` is 0 or has information of its own. Not async-signal-safe.
AddressRange EntryCode(Cfi& cfi, uint64_t entry);

// Maximum of bytes of code between the call that installs a landing pad and the jump to it. libgcc of gcc 12 has 150.
inline constexpr uint64_t kMaxInstallCode = 512;
// Returns the code of a function of libgcc whose information is wrong, because the registers of the function that
// catches have been written over those of its caller: from the call of uw_install_context_1 to the jump to the landing
// pad at `jump` (Cfi::LandingJumpIn). `before` is the code that ends at `jump`, of the same function. Without two calls
// of functions in it, only the code of the jump. Not async-signal-safe.
AddressRange InstallCode(Cfi& cfi, uint64_t jump, base::Bytes before);

}  // namespace perfkit::unwind
