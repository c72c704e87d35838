// Composes and parses the names of cache events.
//
// The canonical names are composed from their words at compile time, so that no name is written twice.
#include "src/event/cache_name.h"

#include <array>
#include <span>

namespace perfkit::event {
namespace {

using Words = std::array<std::string_view, 5>;  // The canonical word first; "" after the last one.

constexpr std::array<Words, kCacheCount> kCaches = {{
    {"L1-dcache", "l1-d", "l1d", "L1-data"},
    {"L1-icache", "l1-i", "l1i", "L1-instruction"},
    {"LLC", "L2"},
    {"dTLB", "d-tlb", "Data-TLB"},
    {"iTLB", "i-tlb", "Instruction-TLB"},
    {"branch", "branches", "bpu", "btb", "bpc"},
    {"node"},
}};
constexpr std::array<Words, kCacheOpCount> kOps = {{
    {"load", "loads", "read"},
    {"store", "stores", "write"},
    {"prefetch", "prefetches", "speculative-read", "speculative-load"},
}};
constexpr std::array<Words, kCacheResultCount> kResults = {{
    {"refs", "Reference", "ops", "access"},
    {"misses", "miss"},
}};

constexpr size_t kLongestName = 28;  // Fits the longest name, "L1-dcache-prefetch-misses".

struct Name {
  std::array<char, kLongestName> text{};
  size_t size = 0;

  constexpr void Append(std::string_view word) {
    if (size != 0) text[size++] = '-';
    for (const char c : word) text[size++] = c;
  }
  constexpr std::string_view view() const { return {text.data(), size}; }
};

// As perf's evsel__hw_cache_name: for accesses the operation's second word ("loads"), for misses its first.
constexpr Name Compose(size_t cache, size_t op, size_t result) {
  Name name;
  name.Append(kCaches[cache][0]);
  name.Append(kOps[op][result == 0 ? 1 : 0]);
  if (result != 0) name.Append(kResults[result][0]);
  return name;
}

constexpr size_t Index(size_t cache, size_t op, size_t result) {
  return (cache * kCacheOpCount + op) * kCacheResultCount + result;
}

constexpr std::array<Name, kCacheEventCount> ComposeAll() {
  std::array<Name, kCacheEventCount> names;
  for (size_t cache = 0; cache < kCacheCount; ++cache) {
    for (size_t op = 0; op < kCacheOpCount; ++op) {
      for (size_t result = 0; result < kCacheResultCount; ++result) {
        names[Index(cache, op, result)] = Compose(cache, op, result);
      }
    }
  }
  return names;
}

constexpr std::array<Name, kCacheEventCount> kNames = ComposeAll();

// Removes the longest word with which `rest` begins, up to a '-' or the end. Returns the words' index, or nullopt.
template <size_t kCount>
std::optional<size_t> TakeWord(std::string_view& rest, const std::array<Words, kCount>& words) {
  size_t longest = 0, found = 0;
  for (size_t i = 0; i < kCount; ++i) {
    for (const std::string_view word : words[i]) {
      const bool whole = rest.size() == word.size() || (rest.size() > word.size() && rest[word.size()] == '-');
      if (word.size() > longest && whole && rest.starts_with(word)) {
        longest = word.size();
        found = i;
      }
    }
  }
  if (longest == 0) return std::nullopt;
  rest.remove_prefix(longest < rest.size() ? longest + 1 : longest);
  return found;
}

}  // namespace

// Parses a cache, then at most one operation and one result in either order. Accepts all combinations: perf refuses
// stores of instruction caches here, simpleperf lists them; the kernel decides what the CPU has.
std::optional<uint64_t> ParseCacheName(std::string_view name) {
  if (name.ends_with('-')) return std::nullopt;
  const std::optional<size_t> cache = TakeWord(name, kCaches);
  if (!cache) return std::nullopt;
  std::optional<size_t> op, result;
  for (int i = 0; i < 2 && !name.empty(); ++i) {
    if (!op && (op = TakeWord(name, kOps))) continue;
    if (!result) result = TakeWord(name, kResults);
  }
  if (!name.empty()) return std::nullopt;
  return CacheConfig(*cache, op.value_or(0), result.value_or(0));
}

// Indexed by the words' indices, which are those of the kernel's enums.
std::string_view CacheEventName(size_t cache, size_t op, size_t result) {
  return kNames[Index(cache, op, result)].view();
}

}  // namespace perfkit::event
