// A program that grows memory, to be run with a preloaded malloc: the bytes are right, or said to be missing.
#include <perfkit/measure.h>

#include <cstdio>
#include <cstdlib>

int main() {
  void* (*volatile allocate)(size_t) = malloc;  // volatile: otherwise the compiler drops the calls.
  void* (*volatile reallocate)(void*, size_t) = realloc;
  const auto measured =
      perfkit::Measure({perfkit::event::kAllocatedBytes}, [&] { free(reallocate(allocate(100), 200)); });
  puts(measured.ToString().c_str());
  const perfkit::Cost& cost = measured.costs.at(0);
  return !cost.measured() || cost.values.at(0) == 300 ? 0 : 1;
}
