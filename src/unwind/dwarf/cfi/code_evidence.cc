// Recognises code by its bytes. PLT stubs are compared as a whole: 16 bytes that are aligned to 16 do not look like one
// by chance. Calls are recognised backwards from their end, which is ambiguous on x86-64: so what a call proves is a
// guess, unless something else agrees with it.
//
// Runs in signal handlers: no library function, and no template of the standard library.
#include "src/unwind/dwarf/cfi/code_evidence.h"

#include <elf.h>

#include "src/base/cursor.h"
#include "src/unwind/machine.h"

namespace perfkit::unwind {
namespace {

// In patterns: any byte.
constexpr int kAny = -1;
constexpr unsigned kBlock = CodeWindow::kBlock;

// lld, lld/ELF/Arch/X86_64.cpp: writePltHeader and writePlt of X86_64 and IntelIBT. GNU ld writes the same bytes, with
// information. mold: write_plt_entry for x86-64.
constexpr int kPltHeader[] = {0xff, 0x35, kAny, kAny, kAny, kAny, 0xff, 0x25, kAny, kAny, kAny, kAny, 15, 31, 64, 0};
constexpr int kPltEntry[] = {0xff, 0x25, kAny, kAny, kAny, kAny, 0x68, kAny,
                             kAny, kAny, kAny, 0xe9, kAny, kAny, kAny, kAny};
constexpr int kIbtEntry[] = {0xf3, 15,   30,   0xfa, 0x68, kAny, kAny, kAny,
                             kAny, 0xe9, kAny, kAny, kAny, kAny, 0x66, 0x90};
constexpr int kIbtStub[] = {0xf3, 15, 30, 0xfa, 0xff, 0x25, kAny, kAny, kAny, kAny, 0x66, 15, 31, 68, 0, 0};
constexpr int kMoldEntry[] = {0xf3, 15,   30,   0xfa, 0x41, 0xbb, kAny, kAny,
                              kAny, kAny, 0xff, 0x25, kAny, kAny, kAny, kAny};

PERFKIT_IN_HANDLER bool Is(const uint8_t* block, const int (&pattern)[kBlock]) {
  for (unsigned i = 0; i < kBlock; ++i) {
    if (pattern[i] != kAny && pattern[i] != block[i]) return false;
  }
  return true;
}

// An entry pushes its index before it jumps to the header, which pushes one word more.
PERFKIT_IN_HANDLER Rule RuleOfStub(const uint8_t* block, unsigned offset) {
  if (Is(block, kPltEntry)) return {.offset = 11, .kind = RuleKind::kPlt};
  if (Is(block, kIbtEntry)) return {.offset = 9, .kind = RuleKind::kPlt};
  if (Is(block, kIbtStub) || Is(block, kMoldEntry)) return {.offset = 8, .kind = RuleKind::kSp};
  if (Is(block, kPltHeader)) return {.offset = offset < 6 ? 16 : 24, .kind = RuleKind::kSp};
  return {};
}

// Boost.Context, src/asm/make_x86_64_sysv_elf_gas.S: the labels trampoline and finish of make_fcontext. A new fiber
// begins at trampoline; its function returns to finish, which ends the process.
constexpr int kFiberEntry[] = {0x55, 0xff, 0xe3};  // push %rbp; jmp *%rbx
constexpr int kEndbr[] = {0xf3, 15, 30, 0xfa};     // With -fcf-protection.
constexpr int kFiberExit[] = {0x48, 0x31, 0xff, 0xe8, kAny, kAny, kAny, kAny, 0xf4};  // xor %rdi, %rdi; call; hlt

// Returns the offset after the pattern, or 0 if the bytes at `at` are others.
template <unsigned kSize>
PERFKIT_IN_HANDLER unsigned After(const uint8_t* bytes, unsigned at, const int (&pattern)[kSize]) {
  for (unsigned i = 0; i < kSize; ++i) {
    if (pattern[i] != kAny && pattern[i] != bytes[at + i]) return 0;
  }
  return at + kSize;
}

// Returns true if byte `offset` of a window is part of the entry and exit of a fiber.
PERFKIT_IN_HANDLER bool IsFiberEntry(const uint8_t* bytes, unsigned offset) {
  constexpr unsigned kLongest = sizeof(kFiberEntry) / sizeof(int) + sizeof(kEndbr) / sizeof(int) +
                                sizeof(kFiberExit) / sizeof(int);
  static_assert(kLongest <= kBlock + 1);
  for (unsigned begin = offset + 1 - kLongest; begin <= offset; ++begin) {
    unsigned at = After(bytes, begin, kFiberEntry);
    if (at == 0) continue;
    if (const unsigned after = After(bytes, at, kEndbr)) at = after;
    const unsigned end = After(bytes, at, kFiberExit);
    if (offset < end) return true;
  }
  return false;
}

// After the call of a thread's function: mov %eax, %edi; SYS_exit to eax; syscall. musl, src/thread/x86_64/clone.s.
constexpr int kThreadExit[] = {0x89, 0xc7, 0x31, 0xc0, 0xb0, 60, 15, 5};
constexpr int kThreadExitToo[] = {0x89, 0xc7, 0xb8, 60, 0, 0, 0, 15, 5};
// mov $SYS_rt_sigreturn, %rax; syscall. musl, src/signal/x86_64/restore.s; glibc has information for it.
constexpr int kSignalReturn[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 15, 5};

// Returns the rule of code that is recognised by what follows it: a return address is looked up by the byte before.
PERFKIT_IN_HANDLER Rule RuleByReturn(const uint8_t* bytes, unsigned offset) {
  if (After(bytes, offset + 1, kThreadExit) != 0 || After(bytes, offset + 1, kThreadExitToo) != 0) {
    return {.kind = RuleKind::kRoot};
  }
  if (After(bytes, offset + 1, kSignalReturn) != 0 || After(bytes, offset, kSignalReturn) != 0) {
    return {.kind = RuleKind::kSignal, .flags = Rule::kSignalFrame};
  }
  return {};
}

// Returns true if xor ebp, ebp is among the bytes [0, end), and no return after it.
PERFKIT_IN_HANDLER bool ClearsFp(const uint8_t* bytes, unsigned end) {
  for (unsigned i = end; i-- > 1;) {
    if (bytes[i] == 0xc3) return false;
    if (bytes[i - 1] == 0x31 && bytes[i] == 0xed) return true;
  }
  return false;
}

// Returns true if FF /2 with its operands ends before byte `end` (Intel's manual, volume 2, CALL).
PERFKIT_IN_HANDLER bool IsIndirectCall(const uint8_t* bytes, unsigned end) {
  for (unsigned size = 2; size <= 7 && size <= end; ++size) {
    const uint8_t* const at = bytes + end - size;
    if (at[0] != 0xff || (at[1] >> 3 & 7) != 2) continue;
    const unsigned mode = at[1] >> 6, rm = at[1] & 7;
    const bool index = mode != 3 && rm == 4;
    const bool far = mode == 2 || (mode == 0 && (rm == 5 || (index && size > 2 && (at[2] & 7) == 5)));
    if (size == 2u + index + (mode == 1 ? 1 : far ? 4 : 0)) return true;
  }
  return false;
}

// Returns true if the file needs other files, as nearly all libraries and programs do; the dynamic linker does not.
bool NeedsOthers(const elf::Image& image) {
  for (uint32_t i = 0; i < image.segment_count(); ++i) {
    const auto segment = image.segment(i);
    const auto bytes = segment && segment->type == PT_DYNAMIC ? image.Contents(*segment) : std::nullopt;
    for (uint64_t at = 0; bytes && at < bytes->size(); at += sizeof(Elf64_Dyn)) {
      const auto entry = base::ReadAt<Elf64_Dyn>(*bytes, at);
      if (!entry || entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_NEEDED) return true;
    }
  }
  return false;
}

bool HasInterpreter(const elf::Image& image) {
  for (uint32_t i = 0; i < image.segment_count(); ++i) {
    if (image.segment(i)->type == PT_INTERP) return true;
  }
  return false;
}

}  // namespace

PERFKIT_IN_HANDLER Rule RuleByCode(const CodeWindow& code, uint64_t address) {
  if (ThisMachine::kLinkRegister) return {};
  const auto offset = static_cast<unsigned>(address % kBlock);
  const Rule stub = RuleOfStub(code.bytes + kBlock, offset);
  if (stub.kind != RuleKind::kNone) return stub;
  if (IsFiberEntry(code.bytes, kBlock + offset)) return {.kind = RuleKind::kRoot};
  const Rule by_return = RuleByReturn(code.bytes, kBlock + offset);
  if (by_return.kind != RuleKind::kNone) return by_return;
  return {.kind = ClearsFp(code.bytes, kBlock + offset + 1) ? RuleKind::kClearsFp : RuleKind::kNone};
}

PERFKIT_IN_HANDLER CallBefore FindCallBefore(const CodeWindow& code, uint64_t address) {
  if (ThisMachine::kLinkRegister) return {};
  const auto end = static_cast<unsigned>(kBlock + (address - 1) % kBlock + 1);
  const uint8_t* const at = code.bytes + end;
  if (at[-5] == 0xe8) {
    const uint32_t distance =
        uint32_t{at[-4]} | uint32_t{at[-3]} << 8 | uint32_t{at[-2]} << 16 | uint32_t{at[-1]} << 24;
    return {CallKind::kDirect, address + static_cast<uint64_t>(int64_t{static_cast<int32_t>(distance)})};
  }
  return {IsIndirectCall(code.bytes, end) ? CallKind::kIndirect : CallKind::kNone, 0};
}

// jmp through memory, after endbr64 and bnd, if they are there.
PERFKIT_IN_HANDLER bool IsJumpByMemory(const CodeWindow& code, uint64_t address) {
  unsigned i = kBlock + static_cast<unsigned>(address % kBlock);
  const auto byte = [&](unsigned at) { return at < 2 * kBlock ? code.bytes[at] : 0; };
  if (byte(i) == 0xf3 && byte(i + 1) == 15 && byte(i + 2) == 30 && byte(i + 3) == 0xfa) i += 4;
  if (byte(i) == 0xf2) ++i;
  return byte(i) == 0xff && byte(i + 1) == 0x25;
}

uint64_t EntryOf(const elf::Image& image) {
  const bool is_program = image.type() == ET_EXEC || HasInterpreter(image) || !NeedsOthers(image);
  return is_program ? image.entry() : 0;
}

// The code is (libgcc's uw_install_context): calls of uw_install_context_1 and _Unwind_DebugHook, pops of the shadow
// stack, loads of registers, and "mov %rcx, %rsp; pop %rcx; jmp *%rcx" at `jump`.
AddressRange InstallCode(Cfi& cfi, uint64_t jump, base::Bytes before) {
  constexpr uint64_t kCallBytes = 5, kJumpBytes = 8;
  AddressRange code{jump, jump};
  const std::optional<uint64_t> function = cfi.FunctionAt(jump);
  while (code.end - jump < kJumpBytes && cfi.FunctionAt(code.end) == function) ++code.end;
  int calls = 0;
  for (uint64_t back = kCallBytes; back <= before.size() && calls < 2; ++back) {
    const uint64_t at = before.size() - back;
    if (before[at] != std::byte{0xe8}) continue;
    const auto distance = base::ReadAt<int32_t>(before, at + 1);
    const uint64_t target = jump - back + kCallBytes + static_cast<uint64_t>(int64_t{distance.value_or(0)});
    if (!cfi.IsFunctionBegin(target)) continue;
    // Not at the call's first byte: there, it has not begun. A return address is looked up by the byte before it.
    if (++calls == 2) code.begin = jump - back + 1;
  }
  return code;
}

AddressRange EntryCode(Cfi& cfi, uint64_t entry) {
  AddressRange range{entry, entry};
  if (entry == 0) return range;
  while (range.end - entry < kMaxEntryCode && !cfi.IsCovered(range.end)) ++range.end;
  return range;
}

}  // namespace perfkit::unwind
