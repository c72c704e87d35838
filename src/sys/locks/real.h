// glibc's own functions, which the interposed calls override.
#pragma once

#include <dlfcn.h>

#include <atomic>

#ifdef __GLIBC__

namespace perfkit::sys::locks {

// The C library's own function. Looked up at the first call.
template <class Function>
class Real {
 public:
  explicit constexpr Real(const char* name, const char* version = nullptr) : name_(name), version_(version) {}

  Function* operator()() noexcept {
    Function* const found = function_.load(std::memory_order_relaxed);  // Relaxed: all threads store the same value.
    return found != nullptr ? found : Find();
  }

 private:
  [[gnu::noinline, gnu::cold]] Function* Find() noexcept {
    void* const found = version_ != nullptr ? dlvsym(RTLD_NEXT, name_, version_) : dlsym(RTLD_NEXT, name_);
    auto* const function = reinterpret_cast<Function*>(found);
    function_.store(function, std::memory_order_relaxed);  // Relaxed: as above.
    return function;
  }

  const char* const name_;
  const char* const version_;
  std::atomic<Function*> function_{nullptr};
};

}  // namespace perfkit::sys::locks

#endif
