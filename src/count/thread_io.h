// The bytes that system calls of the calling thread read and wrote, by the kernel's account in /proc/thread-self/io.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "perfkit/count.h"
#include "src/sys/fd.h"

namespace perfkit::count {

// The two counts of a file /proc/thread-self/io, with what perfkit itself has read.
struct IoBytes {
  uint64_t read = 0;
  uint64_t written = 0;
};

// Parses "rchar: 12\nwchar: 34\n", and ignores what follows. Returns false for any other text.
bool ParseIoBytes(std::string_view text, IoBytes& bytes) noexcept;

class ThreadIo {
 public:
  // Makes event `index` count the bytes read, or else the bytes written. Opens the file if it is not open. Errors:
  // those of opening it; Unavailable if it can't be read or has another layout.
  absl::Status Add(size_t index, bool read, std::string_view asked);

  bool empty() const { return (read_ | written_) == 0; }

  // Reads all events with one system call, without the bytes that perfkit itself has read. Requires the thread that
  // opened the file. If the file can't be read, all events are missing.
  void Read(Snapshot& now) const noexcept;

  void Close() { file_.Reset(); }

 private:
  // Returns how many bytes of the file were read; -1 if that failed.
  ssize_t ReadBytes(IoBytes& bytes) const noexcept;

  sys::OwnedFd file_;
  uint32_t read_ = 0;     // Bit i: event i is the bytes read.
  uint32_t written_ = 0;  // Bit i: event i is the bytes written.
};

}  // namespace perfkit::count
