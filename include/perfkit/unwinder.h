// Whole call stacks of samples that hold registers and a copy of the stack, also of code without frame pointers.
//
//   perfkit::Unwinder unwinder;  // of a sampler with CallStack::UserDump(bytes) and SamplerOptions::side_band
//   sampler->Drain([&](const perfkit::SamplerRecord& record) {
//     unwinder.Add(record, sampler->layout());
//     perfkit::Dispatch(record, sampler->layout(), [&](const perfkit::Sample& sample) {
//       perfkit::StackFrame frames[256];
//       const perfkit::UnwoundStack stack = unwinder.Unwind(sample, frames);
//       for (const perfkit::StackFrame& frame : std::span(frames).first(stack.frames)) Use(frame.code());
//     });
//   });
//
// Component perfkit::dwarf: link it to have this. A stack says how it ended: one that did not reach its root is a part.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "perfkit/sample.h"

namespace perfkit {

namespace unwind {
class Walker;
}

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
  // All others': the return address, behind the call.
  uint64_t pc = 0;
  bool is_return_address = false;
  // Found by following a frame pointer that nothing vouches for: from code without call frame information.
  bool is_guess = false;

  // A byte of the instruction that was under way: what symbols and lines have to be asked for.
  uint64_t code() const { return pc - (is_return_address ? 1 : 0); }
  bool operator==(const StackFrame&) const = default;
};

struct UnwoundStack {
  uint32_t frames = 0;   // that were found, innermost first
  uint32_t guesses = 0;  // of these
  StackEnd end = StackEnd::kNoRegisters;

  bool complete() const { return end == StackEnd::kRoot; }
  bool operator==(const UnwoundStack&) const = default;
};

// Since the Unwinder was made.
struct UnwinderStats {
  uint64_t stacks = 0, frames = 0;
  uint64_t rule_lookups = 0;      // how often it was asked how a frame's caller is found,
  uint64_t cache_hits = 0;        // and how often the answer was in the cache
  uint64_t slow_frames = 0;       // that needed all registers: about a microsecond each, and one for each frame below
  size_t modules = 0;             // files that were opened,
  size_t unreadable_modules = 0;  // and those that could not be, or were other files by now: they have no information
  size_t table_bytes = 0;         // heap that rules of code take; the files are mapped, and the kernel's to drop
};

struct UnwinderOptions {
  std::string proc = "/proc";
};

// Knows what processes have mapped, and how the callers of their code are found. For one thread at a time. Moves, never
// copies.
//
// Opens each module's file when the first frame in it is met, maps it, and keeps it mapped; a file that was replaced
// since it ran is noticed and gives no information. Rules are worked out for each function when it is first met;
// after that nothing is allocated and no system call is made. Bytes, registers and files may be hostile: every walk is
// bounded by the room for its frames, and what is odd ends it.
class Unwinder {
 public:
  explicit Unwinder(UnwinderOptions options = {});
  Unwinder(Unwinder&&) noexcept;
  Unwinder& operator=(Unwinder&&) noexcept;
  ~Unwinder();

  // Takes MMAP, MMAP2, FORK, EXIT and COMM records, in order of time, and passes over all others. Whether it was one
  // that can change what later pcs mean.
  bool Add(const RawRecord& record, const SampleLayout& layout);

  // What process `pid` has mapped now, instead of what was known of it. NotFound when there is none, PermissionDenied
  // when it may not be looked at.
  absl::Status AddProcess(pid_t pid);

  // The stack of a sample with kSampleTid, kSampleRegsUser and kSampleStackUser, by what was mapped in its process
  // according to the latest record: user code only, innermost first, as many as `frames` has room for.
  UnwoundStack Unwind(const Sample& sample, std::span<StackFrame> frames);

  // The same of several samples, eight at a time in turn, so that one waits for memory while others go on: faster where
  // samples are many. Each has its frames in its own equal part of `frames`, in order: those of samples[i] begin at
  // i * (frames.size() / samples.size()). The records of all of them must be there. `stacks`: one each.
  void Unwind(std::span<const Sample> samples, std::span<StackFrame> frames, std::span<UnwoundStack> stacks);

  // Adds up what modules take: some microseconds.
  UnwinderStats stats() const;

 private:
  std::unique_ptr<unwind::Walker> walker_;
};

}  // namespace perfkit
