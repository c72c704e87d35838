// Names decide, not addresses: a profile may be of another process. A wait for a lock has the library's functions
// innermost, so the search ends at the first call of the program's own.
#include "src/profile/stack_evidence.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "src/profile/base_name.h"

namespace perfkit::profile {
namespace {

constexpr std::array<std::string_view, 24> kAllocatorCalls = {"malloc",
                                                              "calloc",
                                                              "realloc",
                                                              "reallocarray",
                                                              "free",
                                                              "cfree",
                                                              "memalign",
                                                              "aligned_alloc",
                                                              "posix_memalign",
                                                              "valloc",
                                                              "pvalloc",
                                                              "int_malloc",
                                                              "int_free",
                                                              "int_realloc",
                                                              "int_memalign",
                                                              "malloc_trim",
                                                              "malloc_consolidate",
                                                              "tcache_init",
                                                              "sysmalloc",
                                                              "systrim",
                                                              "mallinfo",
                                                              "mallinfo2",
                                                              "malloc_stats",
                                                              "malloc_info"};
constexpr std::array<std::string_view, 6> kLockCalls = {"pthread_mutex_", "pthread_rwlock_", "lll_lock_wait",
                                                        "mtx_lock",       "mtx_timedlock",   "pthread_spin_"};
// What the kernel enters and calls for a fault: x86 (arch/x86/mm/fault.c), arm64 (arch/arm64/mm/fault.c), riscv, and
// mm/memory.c for all.
constexpr std::array<std::string_view, 11> kFaultCalls = {
    "asm_exc_page_fault", "exc_page_fault",  "do_user_addr_fault",   "page_fault",
    "do_page_fault",      "do_mem_abort",    "do_translation_fault", "el0_da",
    "handle_page_fault",  "handle_mm_fault", "__handle_mm_fault"};

// "std::this_thread::sleep_for", as a demangled template "void std::this_thread::sleep_for<…>(…)", and what they call.
bool IsOfLanguage(std::string_view function) {
  const std::string_view name = function.substr(0, function.find_first_of("(<"));
  const size_t space = name.rfind(' ');
  const std::string_view word = name.substr(space == name.npos ? 0 : space + 1);
  return word.starts_with("std::") || word.starts_with("__gnu_cxx::") || word.starts_with("__gthread_");
}

bool IsOfSystem(std::string_view module) {
  const std::string_view name = BaseName(module);
  for (const std::string_view library : {"libc.so", "libc-2", "libpthread", "libstdc++", "libc++", "ld-linux", "["}) {
    if (name.starts_with(library)) return true;
  }
  return false;
}

// The program defines these instead of the C library (src/sys/locks).
bool IsInterposed(std::string_view function) {
  for (const std::string_view call : {"pthread_mutex_", "pthread_rwlock_", "pthread_cond_"}) {
    if (function.starts_with(call)) return true;
  }
  for (const std::string_view call : {"sem_wait", "sem_timedwait", "sem_clockwait", "sem_post"}) {
    if (function == call) return true;
  }
  return function.find("perfkit::sys::locks::") != function.npos;
}

bool IsOfSystem(const Profile& profile, uint32_t location_index) {
  const ProfileLocation& location = profile.locations[location_index];
  const std::span<const ProfileCall> calls = profile.CallsAt(location_index);
  if (!calls.empty() && IsInterposed(profile.strings[calls.back().function])) return true;
  return location.module != ProfileLocation::kNoModule &&
         IsOfSystem(profile.strings[profile.modules[location.module].path]);
}

// "GI___libc_malloc" and "__libc_malloc" are "malloc". "" for functions of C++, which are the program's own.
std::string_view PlainName(std::string_view function) {
  if (function.find('(') != function.npos) return "";
  std::string_view name = function.substr(0, function.find('@'));
  for (const std::string_view prefix : {"__", "_", "GI_", "__", "_", "libc_", "je_", "tc_", "mi_"}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  return name;
}

bool IsAllocatorCall(std::string_view function) {
  const std::string_view name = PlainName(function);
  return function.starts_with("operator new") || function.starts_with("operator delete") ||
         std::ranges::find(kAllocatorCalls, name) != kAllocatorCalls.end();
}

// Returns true if `is` holds for a call between the innermost one and the first one of the program's own, inclusive.
bool HasInnermostCall(const Profile& profile, uint32_t stack, absl::FunctionRef<bool(std::string_view function)> is) {
  for (; stack != ProfileStack::kRoot; stack = profile.stacks[stack].parent) {
    const ProfileLocation& location = profile.locations[profile.stacks[stack].location];
    for (const ProfileCall& call : profile.CallsAt(profile.stacks[stack].location)) {
      if (is(profile.strings[call.function])) return true;
    }
    if (!location.kernel && !IsOfSystem(profile, profile.stacks[stack].location)) return false;
  }
  return false;
}

}  // namespace

bool IsInAllocator(const Profile& profile, uint32_t stack) { return HasInnermostCall(profile, stack, IsAllocatorCall); }

bool IsInLockCall(const Profile& profile, uint32_t stack) {
  return HasInnermostCall(profile, stack, [](std::string_view function) {
    const std::string_view name = PlainName(function);
    return std::ranges::any_of(kLockCalls, [&](std::string_view call) { return name.starts_with(call); });
  });
}

bool IsInPageFault(const Profile& profile, uint32_t stack) {
  for (; stack != ProfileStack::kRoot; stack = profile.stacks[stack].parent) {
    if (!profile.locations[profile.stacks[stack].location].kernel) return false;
    for (const ProfileCall& call : profile.CallsAt(profile.stacks[stack].location)) {
      if (std::ranges::find(kFaultCalls, profile.strings[call.function]) != kFaultCalls.end()) return true;
    }
  }
  return false;
}

bool IsInKernel(const Profile& profile, uint32_t stack) {
  return stack != ProfileStack::kRoot && profile.locations[profile.stacks[stack].location].kernel;
}

std::string OwnFunction(const Profile& profile, uint32_t stack) {
  for (; stack != ProfileStack::kRoot; stack = profile.stacks[stack].parent) {
    const ProfileLocation& location = profile.locations[profile.stacks[stack].location];
    const bool has_module = location.module != ProfileLocation::kNoModule;
    if (location.kernel || !has_module || IsOfSystem(profile, profile.stacks[stack].location)) continue;
    for (const ProfileCall& call : profile.CallsAt(profile.stacks[stack].location)) {
      if (call.function != 0 && !IsOfLanguage(profile.strings[call.function])) return profile.strings[call.function];
    }
  }
  return "";
}

}  // namespace perfkit::profile
