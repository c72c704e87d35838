// A linked list under a lock that is held across fork, so that the child sees it whole. Who forks waits with it until
// there is no NoFork.
#include "src/sys/fork_registry.h"

#include <pthread.h>

#include <cstdint>

namespace perfkit::sys {

struct ForkRegistry {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t none_left = PTHREAD_COND_INITIALIZER;
  uint64_t no_forks = 0;  // alive
  pthread_once_t once = PTHREAD_ONCE_INIT;
  ForkWatch* first = nullptr;

  void Add(ForkWatch* watch) {
    pthread_mutex_lock(&lock);
    watch->next_ = first;
    if (first != nullptr) first->previous_ = watch;
    first = watch;
    pthread_mutex_unlock(&lock);
  }

  void Remove(ForkWatch* watch) {
    pthread_mutex_lock(&lock);
    if (watch->next_ != nullptr) watch->next_->previous_ = watch->previous_;
    (watch->previous_ != nullptr ? watch->previous_->next_ : first) = watch->next_;
    pthread_mutex_unlock(&lock);
  }

  void TellAll() const {
    for (const ForkWatch* watch = first; watch != nullptr; watch = watch->next_) watch->LetGo();
  }
};

namespace {

constinit ForkRegistry g_registry;

void Prepare() {
  pthread_mutex_lock(&g_registry.lock);
  while (g_registry.no_forks != 0) pthread_cond_wait(&g_registry.none_left, &g_registry.lock);
}

void InParent() { pthread_mutex_unlock(&g_registry.lock); }

// The forking thread took the lock in Prepare and is the only one here: another that was waiting to fork is not.
void InChild() {
  g_registry.TellAll();
  g_registry.none_left = PTHREAD_COND_INITIALIZER;
  pthread_mutex_unlock(&g_registry.lock);
}

void Install() { pthread_atfork(Prepare, InParent, InChild); }

}  // namespace

ForkWatch::ForkWatch(void (*let_go)(void*), void* owner) : let_go_(let_go), owner_(owner) {
  pthread_once(&g_registry.once, Install);
  g_registry.Add(this);
}

ForkWatch::~ForkWatch() { g_registry.Remove(this); }

NoFork::NoFork() {
  pthread_once(&g_registry.once, Install);
  pthread_mutex_lock(&g_registry.lock);
  ++g_registry.no_forks;
  pthread_mutex_unlock(&g_registry.lock);
}

NoFork::~NoFork() {
  pthread_mutex_lock(&g_registry.lock);
  if (--g_registry.no_forks == 0) pthread_cond_broadcast(&g_registry.none_left);
  pthread_mutex_unlock(&g_registry.lock);
}

}  // namespace perfkit::sys
