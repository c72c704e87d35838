// Wraps the allocator of the program that links this, to count the calls and bytes of each thread:
// perfkit::testing_alloc.
//
// A program's definitions override libc's for all libraries of the process. These count and call glibc's own entries.
// In a program with a sanitizer, which has its own allocator, they call that one, and its hook counts what it allocates
// in other ways. This is an object library, so that linking it suffices.
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

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

// Allocates `size` bytes by libc(arguments...), and counts that; in a program with a sanitizer, whose own function is
// `sanitizer`, by that one. Does not count what the sanitizer's hook has counted: ThreadSanitizer calls it for some
// functions only.
template <class Function, class... Arguments>
[[gnu::always_inline, maybe_unused]] inline void* Allocate(Function* sanitizer, Function* libc, size_t size,
                                                           Arguments... arguments) noexcept {
  if (sanitizer == nullptr) return Counted(libc(arguments...), size);
  const uint64_t before = t_allocations;
  void* const memory = sanitizer(arguments...);
  return t_allocations == before ? Counted(memory, size) : memory;
}

}  // namespace

#pragma GCC visibility push(default)  // The program's libraries, too, call all that follow.
extern "C" {

// Return the addresses of the calling thread's counts. src/sys/allocations.h has weak references to them.
const uint64_t* perfkit_thread_allocations() { return &t_allocations; }
const uint64_t* perfkit_thread_allocated_bytes() { return &t_bytes; }

// sanitizer/allocator_interface.h. If these two are defined, a sanitizer's runtime calls them.
void __sanitizer_malloc_hook(const volatile void* memory, size_t size) {
  ++t_allocations;
  if (memory != nullptr) t_bytes += size;
}
void __sanitizer_free_hook(const volatile void*) {}

#ifdef __GLIBC__

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void* __libc_valloc(size_t size);
void* __libc_pvalloc(size_t size);

// A sanitizer's entries, which are null in programs without one. The functions below hide them from the program.
[[gnu::weak]] void* __interceptor_malloc(size_t size);
[[gnu::weak]] void* __interceptor_calloc(size_t count, size_t size);
[[gnu::weak]] void* __interceptor_realloc(void* memory, size_t size);
[[gnu::weak]] void* __interceptor_memalign(size_t alignment, size_t size);
[[gnu::weak]] void* __interceptor_valloc(size_t size);
[[gnu::weak]] void* __interceptor_pvalloc(size_t size);

void* malloc(size_t size) noexcept { return Allocate(__interceptor_malloc, __libc_malloc, size, size); }

// The product fits if there is memory.
void* calloc(size_t count, size_t size) noexcept {
  return Allocate(__interceptor_calloc, __libc_calloc, count * size, count, size);
}

void* realloc(void* memory, size_t size) noexcept {
  return Allocate(__interceptor_realloc, __libc_realloc, size, memory, size);
}

// The C library's calls realloc, too, but those of some sanitizers do not.
void* reallocarray(void* memory, size_t count, size_t size) noexcept {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return errno = ENOMEM, nullptr;
  return realloc(memory, bytes);
}

void* memalign(size_t alignment, size_t size) noexcept {
  return Allocate(__interceptor_memalign, __libc_memalign, size, alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) noexcept { return memalign(alignment, size); }

void* valloc(size_t size) noexcept { return Allocate(__interceptor_valloc, __libc_valloc, size, size); }

void* pvalloc(size_t size) noexcept { return Allocate(__interceptor_pvalloc, __libc_pvalloc, size, size); }

int posix_memalign(void** out, size_t alignment, size_t size) noexcept {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
  void* const memory = memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}

#endif

}  // extern "C"
#pragma GCC visibility pop
