// Rings that the kernel writes to, for this thread. Opened with perfkit's table of system calls only, because the tests
// are about the reader.
#pragma once

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>

#include "perfkit/sample.h"
#include "src/sys/fd.h"
#include "src/sys/kernel.h"
#include "src/sys/mapping.h"
#include "src/sys/perf_abi.h"

namespace perfkit::live {

inline uint32_t Tid() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

inline AttrBits BitsOf(const sys::PerfEventAttr& attr) {
  return {.sample_type = attr.sample_type,
          .read_format = attr.read_format,
          .branch_sample_type = attr.branch_sample_type,
          .regs_user = attr.sample_regs_user,
          .regs_intr = attr.sample_regs_intr,
          .sample_id_all = attr.sample_id_all != 0};
}

class Ring {
 public:
  // Returns nullopt if the kernel does not accept the attr, or if the memory can't be locked.
  static std::optional<Ring> Open(sys::PerfEventAttr attr, size_t pages, pid_t thread = 0) {
    attr.size = sys::AttrSize(attr);
    sys::OwnedFd fd(sys::kernel().perf_event_open(&attr, thread, -1, -1, sys::kOpenFdCloexec));
    if (fd.get() < 0) return std::nullopt;
    const size_t size = (1 + pages) * sys::PageSize();
    // Only a ring that is mapped read-only overwrites.
    const int protection = attr.write_backward != 0 ? PROT_READ : PROT_READ | PROT_WRITE;
    void* const memory = mmap(nullptr, size, protection, MAP_SHARED, fd.get(), 0);
    if (memory == MAP_FAILED) return std::nullopt;
    return Ring(std::move(fd), static_cast<std::byte*>(memory), size, attr.write_backward != 0);
  }
  Ring(Ring&& other) noexcept
      : fd_(std::move(other.fd_)),
        memory_(std::exchange(other.memory_, nullptr)),
        size_(other.size_),
        backward_(other.backward_) {}
  Ring& operator=(Ring&&) = delete;
  ~Ring() {
    if (memory_ != nullptr) munmap(memory_, size_);
  }

  UserPage* page() const { return reinterpret_cast<UserPage*>(memory_); }
  Bytes data() const { return Bytes(memory_, size_).subspan(sys::PageSize()); }
  RingReader Reader() const { return backward_ ? RingReader::Overwrite(page(), data()) : RingReader(page(), data()); }
  int fd() const { return fd_.get(); }
  void Enable() const { ioctl(fd(), sys::kIocEnable, 0); }
  void Disable() const { ioctl(fd(), sys::kIocDisable, 0); }
  void Pause(bool on) const { ioctl(fd(), 0x40042409 /* PERF_EVENT_IOC_PAUSE_OUTPUT */, on ? 1 : 0); }

 private:
  Ring(sys::OwnedFd fd, std::byte* memory, size_t size, bool backward)
      : fd_(std::move(fd)), memory_(memory), size_(size), backward_(backward) {}

  sys::OwnedFd fd_;
  std::byte* memory_;
  size_t size_;
  bool backward_;
};

}  // namespace perfkit::live
