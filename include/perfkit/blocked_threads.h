// What each thread of this process is doing and waiting for at this moment: for watchdogs.
//
//   if (const auto threads = perfkit::BlockedThreads(); threads.ok()) {
//     fputs(perfkit::FormatBlockedThreads(*threads).c_str(), stderr);   // why does it hang?
//   }
//
// Works for every user, without a session, an event or a signal: /proc/self/task/TID/syscall says in which system call
// a thread is blocked, and its stack is memory of this process, which does not change while it sleeps. The threads are
// not disturbed. Complete stacks require the component perfkit::dwarf; without it a stack is its innermost frame.
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
  // Resolves the calls of stacks to names. Reads the symbols of modules, in some milliseconds each. Without `names`,
  // reads symbols only if a thread seems to wait for a lock: the calls of its three innermost frames confirm that it
  // does. In both cases perfkit::dwarf reads the unwind tables of modules.
  bool names = true;
  // With `names` and perfkit::dwarf: also inlined calls, files and lines. Takes longer.
  bool lines = false;
  // Maximum frames of a stack, clamped to the range from 1 to 65,536.
  uint32_t max_frames = 256;
};

// A thread at the moment when it was examined.
struct ThreadStatus {
  // A call of its stack. If the compiler inlined calls, several have the same frame.
  struct Call {
    uint32_t frame = 0;    // Index in ThreadStatus::frames.
    std::string function;  // "" if it has no name.
    std::string module;    // A path, "[vdso]", "//anon", ….
    uint64_t offset = 0;   // Bytes from the start of the function; without a name, the address in the module's file.
    std::string file;      // "" if unknown.
    uint32_t line = 0;     // 0 if unknown.
    bool inlined = false;  // Inlined into the next call.
  };

  uint32_t tid = 0;
  std::string name;
  // The state letter of proc(5): 'R' runs or waits for a CPU, 'S' sleeps, 'D' sleeps uninterruptibly, 'T' or 't' is
  // stopped, 'Z' has ended; '?' means unknown.
  char state = '?';
  // The thread was blocked: the members from here to `calls` are set.
  bool blocked = false;
  int32_t syscall = -1;  // Number of the system call on this machine; -1 means blocked outside of a system call.
  std::array<uint64_t, 6> arguments{};
  // "futex 0x7f12…", "read of descriptor 3 (pipe:[1234])". Says what the descriptor refers to now, which may have
  // changed since the call began.
  std::string wait;
  // The thread that held the lock that this one waits for; 0 means unknown, or no lock. Known for locks that are not
  // shared between processes: pthread mutexes (std::mutex) that are not robust, priority-inheriting futexes, and with
  // perfkit::dwarf reader-writer locks that a writer has. With C libraries other than glibc, and in programs that are
  // linked statically, known only for priority-inheriting futexes.
  uint32_t holder = 0;
  // The holder is no thread of this process any more, and can't release the lock. In a forked child this is also true
  // for locks that the forking thread held, because that thread has another ID in the child.
  bool holder_gone = false;
  // The thread is in a cycle of threads, each of which waits for a lock that the next one holds: follow `holder`. Each
  // of them was found in the same wait three times in turn, and did not run in between. A wait with a timeout
  // (std::timed_mutex) is also reported, although it will end.
  bool deadlocked = false;
  uint64_t at_ns = 0;                 // Time of the examination, by CLOCK_MONOTONIC.
  std::vector<StackFrame> frames;     // Innermost first.
  StackEnd end = StackEnd::kNoStack;  // Why there are no more frames; kRoot means complete.
  std::vector<Call> calls;            // The names of `frames`, innermost first; empty without `names`.
  // Why the thread is not `blocked`, or why its stack is not complete: "it runs", "its stack ends early: no info". ""
  // otherwise.
  std::string missing;
};

// Returns all threads of the process by tid, including the calling one, which runs. Examines one after the other, so
// the result is not a picture of a single moment. A thread counts as blocked only if it did not run while it was
// examined. Takes about 20 us a thread, and with names some milliseconds a module. Allocates. Thread-safe. In a forked
// child, returns the child's threads. Errors: NotFound or PermissionDenied if /proc/self/task cannot be listed, e.g. in
// a container without /proc; ResourceExhausted if descriptors run out. In a process that is not dumpable, threads have
// a name and a state only, and `missing` gives the reason.
absl::StatusOr<std::vector<ThreadStatus>> BlockedThreads(const BlockedThreadsOptions& options = {});

// Returns a line for each deadlock, and a paragraph for each thread, blocked ones first.
std::string FormatBlockedThreads(std::span<const ThreadStatus> threads);

}  // namespace perfkit
