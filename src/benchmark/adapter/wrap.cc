// Replaces some of State's functions in a program that is linked with --wrap (cmake/Benchmark.cmake).
//
// The linker turns calls of PauseTiming into calls of __wrap_PauseTiming, and __real_PauseTiming into the original. In
// a program that is linked without --wrap nothing calls these functions, and the originals, which are weak, are null.
// Only calls from outside the benchmark library are replaced, not the library's own.
#include <string>

#include "perfkit/benchmark_region.h"

// Itanium C++ ABI names. SetLabel and SkipWithError take a const char* up to 1.7, a std::string from 1.8 on, which also
// has SkipWithMessage.
#define PERFKIT_PAUSE "_ZN9benchmark5State11PauseTimingEv"
#define PERFKIT_RESUME "_ZN9benchmark5State12ResumeTimingEv"
#define PERFKIT_START "_ZN9benchmark5State16StartKeepRunningEv"
#define PERFKIT_FINISH "_ZN9benchmark5State17FinishKeepRunningEv"
#define PERFKIT_LABEL_CHARS "_ZN9benchmark5State8SetLabelEPKc"
#define PERFKIT_LABEL_STRING "_ZN9benchmark5State8SetLabelERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define PERFKIT_ERROR_CHARS "_ZN9benchmark5State13SkipWithErrorEPKc"
#define PERFKIT_ERROR_STRING "_ZN9benchmark5State13SkipWithErrorERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define PERFKIT_SKIP_STRING \
  "_ZN9benchmark5State15SkipWithMessageERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

// Defined by perfkit/benchmark.h, which depends on the layout of State.
extern "C" [[gnu::weak]] bool perfkit_benchmark_begun(const void* state);

namespace {

void SetLabel(void* state, const std::string& label, void (*set)(void* state, const std::string& label)) {
  const bool begun = &perfkit_benchmark_begun != nullptr && perfkit_benchmark_begun(state);
  perfkit::BenchmarkRegion::SetLabel(state, label, begun, set);
}

}  // namespace

// `state` is the object of the member function: its first argument in the Itanium ABI on every Linux.
extern "C" {

[[gnu::weak]] void perfkit_real_pause(void* state) asm("__real_" PERFKIT_PAUSE);
[[gnu::weak]] void perfkit_real_resume(void* state) asm("__real_" PERFKIT_RESUME);
[[gnu::weak]] void perfkit_real_start(void* state) asm("__real_" PERFKIT_START);
[[gnu::weak]] void perfkit_real_finish(void* state) asm("__real_" PERFKIT_FINISH);
[[gnu::weak]] void perfkit_real_label_chars(void* state, const char* label) asm("__real_" PERFKIT_LABEL_CHARS);
[[gnu::weak]] void perfkit_real_label_string(void* state, const std::string& label) asm("__real_" PERFKIT_LABEL_STRING);
[[gnu::weak]] void perfkit_real_error_chars(void* state, const char* why) asm("__real_" PERFKIT_ERROR_CHARS);
[[gnu::weak]] void perfkit_real_error_string(void* state, const std::string& why) asm("__real_" PERFKIT_ERROR_STRING);
[[gnu::weak]] void perfkit_real_skip_string(void* state, const std::string& why) asm("__real_" PERFKIT_SKIP_STRING);

[[gnu::visibility("default")]] void perfkit_wrap_pause(void* state) asm("__wrap_" PERFKIT_PAUSE);
[[gnu::visibility("default")]] void perfkit_wrap_resume(void* state) asm("__wrap_" PERFKIT_RESUME);
[[gnu::visibility("default")]] void perfkit_wrap_start(void* state) asm("__wrap_" PERFKIT_START);
[[gnu::visibility("default")]] void perfkit_wrap_finish(void* state) asm("__wrap_" PERFKIT_FINISH);
[[gnu::visibility("default")]] void perfkit_wrap_label_chars(void* state,
                                                             const char* label) asm("__wrap_" PERFKIT_LABEL_CHARS);
[[gnu::visibility("default")]] void perfkit_wrap_label_string(void* state, const std::string& label) asm(
    "__wrap_" PERFKIT_LABEL_STRING);
[[gnu::visibility("default")]] void perfkit_wrap_error_chars(void* state,
                                                             const char* why) asm("__wrap_" PERFKIT_ERROR_CHARS);
[[gnu::visibility("default")]] void perfkit_wrap_error_string(void* state, const std::string& why) asm(
    "__wrap_" PERFKIT_ERROR_STRING);
[[gnu::visibility("default")]] void perfkit_wrap_skip_string(void* state,
                                                             const std::string& why) asm("__wrap_" PERFKIT_SKIP_STRING);

// Closest to the loop, so that the timer's own work is not counted.
void perfkit_wrap_pause(void* state) {
  perfkit::BenchmarkRegion::Pause(state);
  perfkit_real_pause(state);
}

void perfkit_wrap_resume(void* state) {
  perfkit_real_resume(state);
  perfkit::BenchmarkRegion::Resume(state);
}

void perfkit_wrap_start(void* state) {
  perfkit::BenchmarkRegion::Begin();
  perfkit_real_start(state);
}

void perfkit_wrap_finish(void* state) {
  perfkit_real_finish(state);
  perfkit::BenchmarkRegion::End();
}

void perfkit_wrap_label_chars(void* state, const char* label) {
  SetLabel(state, label, [](void* of, const std::string& text) { perfkit_real_label_chars(of, text.c_str()); });
}

void perfkit_wrap_label_string(void* state, const std::string& label) {
  SetLabel(state, label, [](void* of, const std::string& text) { perfkit_real_label_string(of, text); });
}

void perfkit_wrap_error_chars(void* state, const char* why) {
  perfkit_real_error_chars(state, why);
  perfkit::BenchmarkRegion::End();
}

void perfkit_wrap_error_string(void* state, const std::string& why) {
  perfkit_real_error_string(state, why);
  perfkit::BenchmarkRegion::End();
}

void perfkit_wrap_skip_string(void* state, const std::string& why) {
  perfkit_real_skip_string(state, why);
  perfkit::BenchmarkRegion::End();
}

}  // extern "C"
