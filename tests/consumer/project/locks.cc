// Returns 0 if the program's own definition of a lock serves all of its libraries.
#include <dlfcn.h>

#include <mutex>

int main() {
  std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  Dl_info lock_call{}, program{};
  void* const found = dlsym(RTLD_DEFAULT, "pthread_mutex_lock");
  if (found == nullptr || dladdr(found, &lock_call) == 0) return 1;
  if (dladdr(reinterpret_cast<void*>(&main), &program) == 0) return 2;
  return lock_call.dli_fbase == program.dli_fbase ? 0 : 3;
}
