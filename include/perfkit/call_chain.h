// The call chain of a sample, as the kernel writes it: pcs and context markers (Sample::chain). In user code the kernel
// follows frame pointers; an Unwinder finds the callers of code without them (unwinder.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "perfkit/record.h"

// GCC 14 takes a view that a temporary view returns for dangling (-Wdangling-reference, part of -Wall), unless the
// temporary's class has this attribute.
#if __has_cpp_attribute(gnu::no_dangling)
#define PERFKIT_NO_DANGLING [[gnu::no_dangling]]
#else
#define PERFKIT_NO_DANGLING
#endif

namespace perfkit {

// The privilege level of a part of a call chain: PERF_CONTEXT_*. A kUserDeferred part is one word: the cookie of the
// CallchainDeferredRecord that has the pcs.
enum class ChainContext : uint8_t {
  kNone,  // Before the first context marker.
  kHypervisor,
  kKernel,
  kUser,
  kUserDeferred,
  kGuest,
  kGuestKernel,
  kGuestUser,
  kUnknown,  // After a marker that this library does not know, or that is out of order.
};
// A part of a call chain with one context. A view: valid as long as the record.
struct ChainPart {
  ChainContext context = ChainContext::kNone;
  Words pcs;  // Innermost first; all but the first are return addresses.
};

// A call chain: the kernel's list of pcs and context markers. A marker is a word from PERF_CONTEXT_MAX on, where no
// code can be. A view: valid as long as the record. Thread-safe to read.
//
// Known contexts occur in the order of ChainContext, each at most once. A part after a marker that is unknown or breaks
// this order is kUnknown: the marker is newer than this library, or garbage that the kernel read by following a damaged
// frame pointer.
class PERFKIT_NO_DANGLING CallChain {
 public:
  class Iterator {
   public:
    using value_type = ChainPart;
    using difference_type = ptrdiff_t;
    Iterator() = default;
    explicit Iterator(Words words) noexcept : left_(words) { ++*this; }
    const ChainPart& operator*() const noexcept { return part_; }
    const ChainPart* operator->() const noexcept { return &part_; }
    Iterator& operator++() noexcept;
    void operator++(int) noexcept { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) noexcept { return it.done_; }

   private:
    Words left_;
    ChainPart part_;
    ChainContext last_ = ChainContext::kNone;  // The last known context.
    bool done_ = true;
  };

  // An empty chain.
  CallChain() = default;
  // Views a list as the kernel wrote it.
  explicit CallChain(Words words) noexcept : words_(words) {}

  // Returns the list as written, with its markers.
  Words words() const noexcept { return words_; }
  // Iterates over the parts: for (const ChainPart& part : chain). Parts may be empty. Only kUnknown may occur several
  // times.
  Iterator begin() const noexcept { return Iterator(words_); }
  std::default_sentinel_t end() const noexcept { return {}; }
  // Returns the pcs of the first part with that context, innermost first; empty if there is none.
  Words part(ChainContext context) const noexcept;

 private:
  Words words_;
};

namespace detail {

// Returns the context that a marker (PERF_CONTEXT_*) stands for; kNone if `word` is an address.
inline ChainContext MarkOf(uint64_t word) noexcept {
  constexpr uint64_t kLowestMark = -uint64_t{4095};  // PERF_CONTEXT_MAX
  if (word < kLowestMark) [[likely]]
    return ChainContext::kNone;
  switch (static_cast<int64_t>(word)) {
    case -32: return ChainContext::kHypervisor;
    case -128: return ChainContext::kKernel;
    case -512: return ChainContext::kUser;
    case -640: return ChainContext::kUserDeferred;
    case -2048: return ChainContext::kGuest;
    case -2176: return ChainContext::kGuestKernel;
    case -2560: return ChainContext::kGuestUser;
  }
  return ChainContext::kUnknown;
}

// Removes the first part from `words` and returns it. `last` is the last known context before it.
inline ChainPart TakePart(Words& words, ChainContext last) noexcept {
  ChainPart part;
  size_t begin = 0;
  if (const ChainContext mark = MarkOf(words[0]); mark != ChainContext::kNone) {
    part.context = mark > last ? mark : ChainContext::kUnknown;
    begin = 1;
  }
  size_t end = begin;
  while (end < words.size() && MarkOf(words[end]) == ChainContext::kNone) ++end;
  part.pcs = words.subspan(begin, end - begin);
  words = words.subspan(end, words.size() - end);
  return part;
}

}  // namespace detail

inline CallChain::Iterator& CallChain::Iterator::operator++() noexcept {
  done_ = left_.empty();
  if (done_) return *this;
  part_ = detail::TakePart(left_, last_);
  if (part_.context != ChainContext::kUnknown) last_ = part_.context;
  return *this;
}

}  // namespace perfkit

#undef PERFKIT_NO_DANGLING
