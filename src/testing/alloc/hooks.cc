// Wraps the allocator of the program that links this, to count the calls and bytes of each thread:
// perfkit::testing_alloc.
//
// A program's definitions override libc's for all libraries of the process. These count and call glibc's own entries.
// Under a sanitizer, which has its own allocator, its hook counts instead. This is an object library, so that linking
// it suffices.
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/sanitizers.h"

namespace {

// Initial-exec: the first access on a thread must not allocate. If a signal handler allocates (it should not), the
// increment races with the interrupted thread's own.
[[gnu::tls_model("initial-exec")]] constinit thread_local uint64_t t_allocations = 0;
[[gnu::tls_model("initial-exec")]] constinit thread_local uint64_t t_bytes = 0;

// Counts a call that requested `size` bytes and got `memory`. Returns `memory`.
[[maybe_unused]] inline void* Counted(void* memory, size_t size) noexcept {
  ++t_allocations;
  if (memory != nullptr) t_bytes += size;
  return memory;
}

}  // namespace

// Return the addresses of the calling thread's counts. src/sys/allocations.h has weak references to them.
extern "C" __attribute__((visibility("default"))) const uint64_t* perfkit_thread_allocations() {
  return &t_allocations;
}
extern "C" __attribute__((visibility("default"))) const uint64_t* perfkit_thread_allocated_bytes() { return &t_bytes; }

#if PERFKIT_SANITIZED

// sanitizer/allocator_interface.h. If these two are defined, the sanitizer's runtime calls them.
extern "C" __attribute__((visibility("default"))) void __sanitizer_malloc_hook(const volatile void*, size_t size) {
  ++t_allocations;
  t_bytes += size;
}
extern "C" __attribute__((visibility("default"))) void __sanitizer_free_hook(const volatile void*) {}

#elif defined(__GLIBC__)

extern "C" {

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void* __libc_valloc(size_t size);
void* __libc_pvalloc(size_t size);

void* malloc(size_t size) noexcept { return Counted(__libc_malloc(size), size); }

// The product fits if there is memory.
void* calloc(size_t count, size_t size) noexcept { return Counted(__libc_calloc(count, size), count * size); }

void* realloc(void* memory, size_t size) noexcept { return Counted(__libc_realloc(memory, size), size); }

void* memalign(size_t alignment, size_t size) noexcept { return Counted(__libc_memalign(alignment, size), size); }

void* aligned_alloc(size_t alignment, size_t size) noexcept { return Counted(__libc_memalign(alignment, size), size); }

void* valloc(size_t size) noexcept { return Counted(__libc_valloc(size), size); }

void* pvalloc(size_t size) noexcept { return Counted(__libc_pvalloc(size), size); }

int posix_memalign(void** out, size_t alignment, size_t size) noexcept {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
  void* const memory = Counted(__libc_memalign(alignment, size), size);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}

}  // extern "C"

#endif
