// mmap, owned.
#include "src/sys/mapping.h"

#include <sys/mman.h>
#include <unistd.h>

namespace perfkit::sys {

size_t PageSize() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

std::byte* MapPresent(size_t size) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
  void* const at = kernel().mmap(nullptr, size, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  return at != MAP_FAILED ? static_cast<std::byte*>(at) : nullptr;
}

void UnmapPresent(std::byte* memory, size_t size) { kernel().munmap(memory, size); }

std::optional<Mapping> Mapping::ReadOnly(int fd, size_t size) {
  void* const at = kernel().mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return std::nullopt;
  return Mapping(static_cast<std::byte*>(at), size);
}

// Writable: the reader of a ring tells the kernel there how far it has read (data_tail; man perf_event_open).
std::optional<Mapping> Mapping::Shared(int fd, size_t size) {
  void* const at = kernel().mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return std::nullopt;
  return Mapping(static_cast<std::byte*>(at), size);
}

std::optional<Mapping> Mapping::Anonymous(size_t size) {
  void* const at = kernel().mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return std::nullopt;
  return Mapping(static_cast<std::byte*>(at), size);
}

}  // namespace perfkit::sys
