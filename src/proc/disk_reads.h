// How much a thread has read from disks, by the kernel's account: /proc/PID/task/TID/io (proc(5); the kernel needs
// CONFIG_TASK_IO_ACCOUNTING). What the page cache had is not in it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace perfkit::proc {

// Returns the number in the line "read_bytes: 4096" of an io file; nullopt if there is none.
std::optional<uint64_t> ParseDiskBytes(std::string_view io);

// Returns the bytes that a thread of this process has had read from disks. A read counts when it is submitted, before
// the thread waits for it. Returns nullopt if the thread has ended, or the kernel keeps no account.
std::optional<uint64_t> ReadDiskBytes(pid_t tid);

}  // namespace perfkit::proc
