// PERFKIT_SANITIZED: 1 if this code is instrumented by a sanitizer that has an allocator and a runtime of its own
// (AddressSanitizer, HWAddressSanitizer, MemorySanitizer, ThreadSanitizer), else 0. PERFKIT_SANITIZED_THREAD: 1 if that
// is ThreadSanitizer. GCC defines a macro for each sanitizer, clang a feature.
#pragma once

#if defined(__has_feature)
#define PERFKIT_HAS_FEATURE(name) __has_feature(name)
#else
#define PERFKIT_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_THREAD__) || PERFKIT_HAS_FEATURE(thread_sanitizer)
#define PERFKIT_SANITIZED_THREAD 1
#else
#define PERFKIT_SANITIZED_THREAD 0
#endif

#if PERFKIT_SANITIZED_THREAD || defined(__SANITIZE_ADDRESS__) || PERFKIT_HAS_FEATURE(address_sanitizer) || \
    defined(__SANITIZE_HWADDRESS__) || PERFKIT_HAS_FEATURE(hwaddress_sanitizer) ||                         \
    PERFKIT_HAS_FEATURE(memory_sanitizer)
#define PERFKIT_SANITIZED 1
#else
#define PERFKIT_SANITIZED 0
#endif
