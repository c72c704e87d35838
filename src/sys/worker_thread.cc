// pthread_create, with the signal mask that the new thread inherits.
#include "src/sys/worker_thread.h"

#include <signal.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "src/sys/uncancelled.h"

namespace perfkit::sys {

void* WorkerThread::Run(void* self) {
  auto* const worker = static_cast<WorkerThread*>(self);
  pthread_setname_np(pthread_self(), worker->name_);
  running_.fetch_add(1, std::memory_order_relaxed);
  worker->work_();
  running_.fetch_sub(1, std::memory_order_relaxed);
  return nullptr;
}

absl::Status WorkerThread::Start(const char* name, std::function<void()> work) {
  name_ = name;
  work_ = std::move(work);
  sigset_t blocked, before;
  sigfillset(&blocked);
  // A fault of the thread's own code must reach its handler: if the signal is blocked, the kernel ends the process
  // (force_sig_info_to_task in kernel/signal.c).
  for (const int signal : {SIGTRAP, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS}) sigdelset(&blocked, signal);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  pthread_t thread{};
  const int error = pthread_create(&thread, nullptr, Run, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return absl::ErrnoToStatus(error, absl::StrFormat("cannot start the thread \"%s\"", name));
  thread_ = thread;
  return absl::OkStatus();
}

// pthread_join is a cancellation point, and destructors call this.
void WorkerThread::Join() {
  const Uncancelled uncancelled;
  if (thread_) pthread_join(*thread_, nullptr);
  thread_.reset();
}

}  // namespace perfkit::sys
