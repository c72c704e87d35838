// Programs wait in futexes of their own by syscall(2) of the C library, or without the C library: these stacks are no
// proof. If the C library has no symbols, its internal functions have no names. Then a call in it is enough for
// mutexes, because nothing else in it waits with such a value on such words.
#include "src/session/lock_holder.h"

#include <algorithm>

namespace perfkit::session {
namespace {

using sys::FutexLock;

// "libc.so.6", "libc-2.31.so", and "libpthread-2.31.so" of glibc before 2.34.
bool IsLibc(std::string_view module) {
  const std::string_view name = module.substr(module.rfind('/') + 1);
  return name == "libc.so" || name.starts_with("libc.so.") || name.starts_with("libc-2.") ||
         name.starts_with("libpthread.so.") || name.starts_with("libpthread-2.");
}

// glibc's internal names are the public ones with a prefix.
std::string_view PublicName(std::string_view name) {
  const auto skip_underscores = [&] { name.remove_prefix(std::min(name.find_first_not_of('_'), name.size())); };
  skip_underscores();
  if (name.starts_with("GI_")) name.remove_prefix(3);
  skip_underscores();
  return name;
}

// What a function of the C library proves: that its thread waits for such a lock, that it does not, or nothing.
enum class Evidence : uint8_t { kNone, kFor, kAgainst };

Evidence EvidenceOf(FutexLock lock, std::string_view function) {
  const std::string_view name = PublicName(function);
  if (name.empty() || name.starts_with("futex")) return Evidence::kNone;
  const auto is = [](bool proven) { return proven ? Evidence::kFor : Evidence::kAgainst; };
  if (lock == FutexLock::kRwlock) return is(name.starts_with("pthread_rwlock_"));
  // After a signal, pthread_cond_wait locks the mutex again. Its wait for the signal itself looks like kTimedMutex.
  const bool relocks = lock == FutexLock::kMutex && name.starts_with("pthread_cond_");
  return is(relocks || name == "lll_lock_wait" || name.starts_with("pthread_mutex_") || name.starts_with("mtx_"));
}

}  // namespace

bool ProvesLock(FutexLock lock, std::span<const NamedCall> calls) {
  if (lock == FutexLock::kNone) return false;
  if (lock == FutexLock::kPriorityInheriting) return true;  // Only for locks, whatever program calls it.
  bool in_libc = false;
  for (const NamedCall& call : calls) {
    if (!IsLibc(call.module)) break;
    in_libc = true;
    const Evidence evidence = EvidenceOf(lock, call.function);
    if (evidence != Evidence::kNone) return evidence == Evidence::kFor;
  }
  return in_libc && lock != FutexLock::kRwlock;
}

}  // namespace perfkit::session
