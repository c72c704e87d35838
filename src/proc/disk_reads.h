// How much a thread has read from disks, by the kernel's account: /proc/PID/task/TID/io (proc(5); the kernel needs
// CONFIG_TASK_IO_ACCOUNTING). Reads that the page cache answers do not count.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace perfkit::proc {

// Returns the number in the line "read_bytes: 4096" of an io file; nullopt if there is none.
std::optional<uint64_t> ParseDiskBytes(std::string_view io);

// Returns how many bytes a thread of this process has read from disks. A read counts when it is submitted, before the
// thread waits for it (submit_bio in block/blk-core.c). Returns nullopt if the thread has ended, if this process may not
// read the file (it is not dumpable), or if the kernel keeps no account.
std::optional<uint64_t> ReadDiskBytes(pid_t tid);

}  // namespace perfkit::proc
