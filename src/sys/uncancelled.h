// Protection from pthread_cancel.
#pragma once

#include <pthread.h>

namespace perfkit::sys {

// While one lives, its thread is not cancelled: a cancellation that is pending, or comes meanwhile, takes effect at the
// first cancellation point after that. A thread that is cancelled in a destructor or in a noexcept function ends the
// process, and one that holds a lock leaves it held.
class Uncancelled {
 public:
  Uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int before_ = 0;
};

}  // namespace perfkit::sys
