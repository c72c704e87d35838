// Wraps the allocator of the program that links this, to count the calls of each thread: perfkit::testing_alloc.
//
// Definitions in a program come before libc's, for every library in the process; they count and go on to glibc's own
// entries. Under a sanitizer, which has an allocator of its own, its hook counts instead. An object library, so that
// linking it is enough.
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define PERFKIT_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PERFKIT_SANITIZED 1
#endif

namespace {

// Initial-exec: the first access on a thread must not allocate. Signal handlers may allocate (they should not): one
// increment is one instruction's worth of a race with oneself.
[[gnu::tls_model("initial-exec")]] constinit thread_local uint64_t t_allocations = 0;

}  // namespace

// Where the calling thread's number is. Looked up by a weak reference in src/measure/hook_take.cc.
extern "C" __attribute__((visibility("default"))) const uint64_t* perfkit_thread_allocations() {
  return &t_allocations;
}

#if defined(PERFKIT_SANITIZED)

// sanitizer/allocator_interface.h. Where these two are defined, the runtime calls them.
extern "C" __attribute__((visibility("default"))) void __sanitizer_malloc_hook(const volatile void*, size_t) {
  ++t_allocations;
}
extern "C" __attribute__((visibility("default"))) void __sanitizer_free_hook(const volatile void*) {}

#elif defined(__GLIBC__)

extern "C" {

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) noexcept {
  ++t_allocations;
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) noexcept {
  ++t_allocations;
  return __libc_calloc(count, size);
}

void* realloc(void* memory, size_t size) noexcept {
  ++t_allocations;
  return __libc_realloc(memory, size);
}

void* memalign(size_t alignment, size_t size) noexcept {
  ++t_allocations;
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) noexcept {
  ++t_allocations;
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** out, size_t alignment, size_t size) noexcept {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
  ++t_allocations;
  void* const memory = __libc_memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}

}  // extern "C"

#endif
