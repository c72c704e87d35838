// Finds the rseq area that glibc registered for each thread.
#include "src/sys/rseq.h"

#include <cstddef>

#include "src/base/in_handler.h"

// glibc >= 2.35 exports these (man rseq(2) has the layout). They are weak, so that older glibc and musl link too.
extern "C" {
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));
}

namespace perfkit::sys {

PERFKIT_IN_HANDLER const uint32_t* CurrentCpuWord() {
  static constexpr uint32_t kUnknown = ~0u;
#if defined(__x86_64__) || defined(__aarch64__) || defined(__riscv)
  if (&__rseq_offset == nullptr || &__rseq_size == nullptr || __rseq_size == 0) return &kUnknown;
  // struct rseq: cpu_id_start at 0, cpu_id at 4.
  const char* const area = static_cast<const char*>(__builtin_thread_pointer()) + __rseq_offset;
  return reinterpret_cast<const uint32_t*>(area + 4);
#else
  return &kUnknown;
#endif
}

}  // namespace perfkit::sys
