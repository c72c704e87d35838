// The fast path alone, with a cache that changes under it.
#include "src/unwind/dwarf/sampled/fast_path_walk.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <memory>
#include <span>

namespace perfkit::unwind {
namespace {

constexpr uint64_t kSp = 0x7ffc'0000'0000, kPc = 0x401000;
constexpr uint32_t kGeneration = 1;

// Two frames of 16 bytes each: the first one's caller is at kPc + 0x100, and there is no third.
struct TwoFrames {
  std::array<uint64_t, 2> words = {0, kPc + 0x100};
  std::array<StackFrame, 8> frames;
  std::unique_ptr<RuleCache> cache = std::make_unique<RuleCache>();

  FastPathWalk Walk() {
    const StackBytes stack(kSp, std::as_bytes(std::span(words)));
    return {WalkState{.pc = kPc, .sp = kSp, .fp = 0}, stack, frames, 0, kGeneration};
  }
  // Returns a walk at the second frame, whose rule is of that kind; it is not looked up yet.
  FastPathWalk AtSecond(RuleKind kind) {
    Put(kPc, RuleKind::kSp);
    Put(kPc + 0xff, kind);
    FastPathWalk walk = Walk();
    REQUIRE(walk.Start(*cache));
    REQUIRE(walk.Advance());
    return walk;
  }
  void Put(uint64_t code, RuleKind kind) {
    cache->Put(RuleCache::KeyOf(code, kGeneration), {.offset = 16, .slot = -1, .kind = kind});
  }
};

TEST_CASE("the root is written once, with the frames before it", "[fast_path]") {
  TwoFrames two;
  FastPathWalk walk = two.AtSecond(RuleKind::kRoot);
  CHECK_FALSE(walk.LookUp(*two.cache));
  CHECK(walk.TakeRoot());
  CHECK(walk.found() == 2);
  CHECK(two.frames[1].pc == kPc + 0x100);
  CHECK(two.frames[1].is_return_address);
}

TEST_CASE("a frame whose words are missing is no root, whatever is put into the cache meanwhile", "[fast_path]") {
  TwoFrames two;
  FastPathWalk walk = two.AtSecond(RuleKind::kSp);
  REQUIRE(walk.LookUp(*two.cache));
  // As another lane's walk does. These are enough for all entries.
  for (uint64_t code = 0; code < 100'000; ++code) two.Put(0x500000 + code, RuleKind::kRoot);
  CHECK(two.cache->Find(RuleCache::KeyOf(kPc + 0xff, kGeneration)) == nullptr);
  CHECK_FALSE(walk.Advance());
  CHECK_FALSE(walk.TakeRoot());
  CHECK(walk.found() == 1);
}

TEST_CASE("other frames than the root are not written by TakeRoot", "[fast_path]") {
  for (const RuleKind kind : {RuleKind::kNone, RuleKind::kPlt, RuleKind::kSignal, RuleKind::kSlow, RuleKind::kClearsFp,
                              RuleKind::kEntry, RuleKind::kInstalls}) {
    TwoFrames two;
    FastPathWalk walk = two.AtSecond(kind);
    CHECK_FALSE(walk.LookUp(*two.cache));
    CHECK_FALSE(walk.TakeRoot());
    CHECK(walk.found() == 1);
  }
}

}  // namespace
}  // namespace perfkit::unwind
