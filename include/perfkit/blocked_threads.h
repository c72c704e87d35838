// What each thread of this process does at this moment, and what it waits for: for watchdogs.
//
//   if (const auto threads = perfkit::BlockedThreads(); threads.ok()) {
//     fputs(perfkit::FormatBlockedThreads(*threads).c_str(), stderr);   // why does it hang?
//   }
//
// For every user, without a session, an event or a signal: /proc/self/task/TID/syscall says in which system call a
// thread is blocked, and its stack is memory of this process, which does not change while it sleeps. Threads notice
// nothing.
#pragma once

#include "perfkit/detail/library_only.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/stack_frame.h"

namespace perfkit {

struct BlockedThreadsOptions {
  // Names the calls of stacks: reads the files of modules, some milliseconds each.
  bool names = true;
  // With `names`: also inlined calls, files and lines, if perfkit::dwarf is linked; takes longer.
  bool lines = false;
  // Maximum calls of a stack.
  uint32_t max_frames = 256;
};

// A thread at the moment of the look.
struct ThreadLook {
  // A call of its stack. Several calls have one frame if the compiler inlined some of them.
  struct Call {
    uint32_t frame = 0;    // in ThreadLook::frames
    std::string function;  // "" if it has no name
    std::string module;    // a path; "[vdso]", "//anon", …
    uint64_t offset = 0;   // bytes from the start of the function; without one, the address in the module's file
    std::string file;      // "" if unknown
    uint32_t line = 0;     // 0 if unknown
    bool inlined = false;  // into the next call
  };

  uint32_t tid = 0;
  std::string name;
  // The kernel's letter (proc(5)): 'R' runs or waits for a CPU, 'S' sleeps, 'D' sleeps and no signal wakes it, 'T' or
  // 't' is stopped, 'Z' has ended; '?' unknown.
  char state = '?';
  // Whether it is known what it waits for: what follows.
  bool blocked = false;
  int32_t syscall = -1;  // its number on this machine; -1: blocked outside of a system call
  std::array<uint64_t, 6> arguments{};
  // "futex 0x7f12…", "read of descriptor 3 (pipe:[1234])". The file is the one that the number had at the moment of
  // the look: it may be another one than when the call began.
  std::string wait;
  uint64_t at_ns = 0;                 // when it was looked at, by CLOCK_MONOTONIC
  std::vector<StackFrame> frames;     // innermost first
  StackEnd end = StackEnd::kNoStack;  // why there are no more; kRoot: the stack is whole
  std::vector<Call> calls;  // the names of `frames`, innermost first; empty without BlockedThreadsOptions::names
  // Why the fields above are empty, or why the stack is not whole: "runs", "moved during each of 3 looks", ….
  std::string missing;
};

// Returns all threads of the process, by number, the calling one too, which runs. A stack is there only if its thread
// did not run between two readings around the look. Each thread is looked at in turn: it is no picture of one moment.
// Takes about 20 us a thread, and with names some milliseconds a module; allocates. Thread-safe.
// Works in a forked child, for the child's own threads.
// Errors: NotFound or PermissionDenied if /proc/self/task cannot be listed (no /proc, as in some containers);
// ResourceExhausted without a descriptor for it. A process that is not dumpable gets states and names; `missing` says
// why there is no more.
absl::StatusOr<std::vector<ThreadLook>> BlockedThreads(const BlockedThreadsOptions& options = {});

// As text: a paragraph for each thread, those that are blocked first.
std::string FormatBlockedThreads(std::span<const ThreadLook> threads);

}  // namespace perfkit
