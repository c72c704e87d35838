// A program whose operator new does not call malloc: its allocations are not all counted, so perfkit must refuse to
// count.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "perfkit/counter.h"

namespace {

alignas(std::max_align_t) std::array<char, 4 << 20> arena;  // Never freed.
std::atomic<size_t> used{0};

}  // namespace

void* operator new(size_t size) {
  const size_t rounded = (size + alignof(std::max_align_t) - 1) / alignof(std::max_align_t) * alignof(std::max_align_t);
  const size_t at = used.fetch_add(rounded);
  if (at + rounded > arena.size()) abort();
  return arena.data() + at;
}
void operator delete(void*) noexcept {}
void operator delete(void*, size_t) noexcept {}

int main() {
  const absl::Status status = perfkit::CounterSet::Open({"allocations"}).status();
  puts(status.ok() ? "counted" : std::string(status.message()).c_str());
}
