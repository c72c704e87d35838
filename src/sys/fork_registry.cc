// A linked list under a lock that is held across fork, so that the child sees a complete list. A fork waits until there
// is no ForkBlocker. A thread that needs a ForkBlocker meanwhile lets the fork go first: otherwise two threads that
// open and close events all the time would keep a third from forking forever. It waits for a limited time only, because
// the forking thread may be one that a holder of a ForkBlocker waits for.
#include "src/sys/fork_registry.h"

#include <pthread.h>
#include <time.h>

#include <cstdint>

#include "src/sys/kernel.h"
#include "src/sys/uncancelled.h"

namespace perfkit::sys {

struct ForkRegistry {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t none_left = PTHREAD_COND_INITIALIZER;
  // Signals the end of a fork. Install and InChild initialise it again, with another clock.
  pthread_cond_t forked = PTHREAD_COND_INITIALIZER;
  uint64_t no_forks = 0;  // ForkBlockers that exist.
  uint64_t waiting = 0;   // Threads that wait to fork.
  pthread_once_t once = PTHREAD_ONCE_INIT;
  ForkListener* first = nullptr;

  void Add(ForkListener* listener) {
    pthread_mutex_lock(&lock);
    listener->next_ = first;
    if (first != nullptr) first->previous_ = listener;
    first = listener;
    pthread_mutex_unlock(&lock);
  }

  void Remove(ForkListener* listener) {
    pthread_mutex_lock(&lock);
    if (listener->next_ != nullptr) listener->next_->previous_ = listener->previous_;
    (listener->previous_ != nullptr ? listener->previous_->next_ : first) = listener->next_;
    pthread_mutex_unlock(&lock);
  }

  void TellAll() const {
    for (const ForkListener* listener = first; listener != nullptr; listener = listener->next_)
      listener->OnForkedChild();
  }
};

namespace {

constexpr long kGiveWayNs = 20'000'000;

constinit ForkRegistry g_registry;
constinit thread_local unsigned t_no_forks = 0;  // ForkBlockers of this thread, which may be nested.

// Runs in the forking thread before the fork. The lock stays held until InParent or InChild.
void Prepare() {
  const Uncancelled uncancelled;
  pthread_mutex_lock(&g_registry.lock);
  ++g_registry.waiting;
  while (g_registry.no_forks != 0) pthread_cond_wait(&g_registry.none_left, &g_registry.lock);
  --g_registry.waiting;
}

void InParent() {
  pthread_cond_broadcast(&g_registry.forked);
  pthread_mutex_unlock(&g_registry.lock);
}

// Uses a clock that cannot be set back.
void MakeForked() {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&g_registry.forked, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

// Runs in the child. The forking thread took the lock in Prepare and is the only thread here; other threads that were
// waiting to fork do not exist.
void InChild() {
  g_registry.TellAll();
  // Conditions remember their waiters, which are threads of the parent.
  g_registry.none_left = PTHREAD_COND_INITIALIZER;
  MakeForked();
  g_registry.waiting = 0;
  pthread_mutex_unlock(&g_registry.lock);
}

void Install() {
  MakeForked();
  pthread_atfork(Prepare, InParent, InChild);
}

// Requires the lock. Waits until no thread waits to fork, at most for kGiveWayNs.
void GiveWay() {
  if (g_registry.waiting == 0) return;
  const Uncancelled uncancelled;
  timespec until{};
  kLinux.clock_gettime(CLOCK_MONOTONIC, &until);  // The wait is by that clock, even if a test replaces clock_gettime.
  until.tv_nsec += kGiveWayNs;
  until.tv_sec += until.tv_nsec / 1'000'000'000;
  until.tv_nsec %= 1'000'000'000;
  while (g_registry.waiting != 0 && pthread_cond_timedwait(&g_registry.forked, &g_registry.lock, &until) == 0) {
  }
}

}  // namespace

ForkListener::ForkListener(void (*on_forked_child)(void*), void* owner)
    : on_forked_child_(on_forked_child), owner_(owner) {
  pthread_once(&g_registry.once, Install);
  g_registry.Add(this);
}

ForkListener::~ForkListener() { g_registry.Remove(this); }

ForkBlocker::ForkBlocker() {
  pthread_once(&g_registry.once, Install);
  pthread_mutex_lock(&g_registry.lock);
  // A nested one does not wait: the fork itself waits for the outer one.
  if (t_no_forks++ == 0) GiveWay();
  ++g_registry.no_forks;
  pthread_mutex_unlock(&g_registry.lock);
}

ForkBlocker::~ForkBlocker() {
  pthread_mutex_lock(&g_registry.lock);
  --t_no_forks;
  if (--g_registry.no_forks == 0) pthread_cond_broadcast(&g_registry.none_left);
  pthread_mutex_unlock(&g_registry.lock);
}

}  // namespace perfkit::sys
