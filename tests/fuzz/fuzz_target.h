// One fuzz target, two ways to run it.
//
// With -DPERFKIT_LIBFUZZER and clang's -fsanitize=fuzzer a target's file is libFuzzer's entry:
//   clang++-14 -std=c++20 -g -fsanitize=fuzzer,address -DPERFKIT_LIBFUZZER -I. -Iinclude
//     -DPERFKIT_TEST_DATA='"tests"' tests/fuzz/elf_fuzz.cc $(find src -name '*.cc' ! -path '*/pfm/*') -labsl_...
// Without, replay_test.cc includes it and feeds it mutated seeds, the same ones every time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#ifdef PERFKIT_LIBFUZZER
#define PERFKIT_FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
#else
#define PERFKIT_FUZZ_TARGET(name) int name(const uint8_t* data, size_t size)
#endif

// What must hold for every input. Ends the program: libFuzzer and ctest both take that for a find.
#define PERFKIT_FUZZ_CHECK(condition)                                                          \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      std::fprintf(stderr, "%s:%d: fuzzed input broke: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                            \
    }                                                                                          \
  } while (false)
