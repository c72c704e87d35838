// Which stacks are remembered, for how long, and what is taken from them.
#include "src/unwind/dwarf/sampled/stack_stitcher.h"

#include <catch2/catch.hpp>
#include <vector>

#include "tests/support/record_builder.h"

namespace perfkit {
namespace {

using testing::RecordBuilder;
using unwind::KnownCall;
using unwind::StackStitcher;

using Stack = std::vector<KnownCall>;

KnownCall Call(uint64_t pc, uint64_t cfa) { return {.frame = {.pc = pc, .is_return_address = true}, .cfa = cfa}; }

std::vector<uint64_t> Pcs(std::span<const KnownCall> calls) {
  std::vector<uint64_t> pcs;
  for (const KnownCall& call : calls) pcs.push_back(call.frame.pc);
  return pcs;
}

using Found = std::vector<uint64_t>;

class Memory {
 public:
  explicit Memory(size_t bytes = 1 << 20) : memory(bytes) {}

  void Remember(const Stack& calls, TaskId task = {7, 8}) { memory.Remember(task, calls); }
  void Observe(const Stack& calls, TaskId task = {7, 8}) { memory.Observe(task, calls); }
  Found Find(const Stack& calls, TaskId task = {7, 8}) { return Pcs(memory.Find(task, calls)); }
  void Add(const RecordBuilder& body, RecordType type, uint16_t misc = 0) {
    const std::string record = body.Finish(type, misc);
    memory.Add(testing::AsRecord(record), SampleLayout());
  }

  StackStitcher memory;
};

const Stack kStack = {Call(0x1110, 0x8100), Call(0x2220, 0x8200), Call(0x3330, 0x8300),
                      Call(0x4440, KnownCall::kNoCfa)};

TEST_CASE("what is outside of a call is found by its CFA and its pc", "[stitch]") {
  Memory memory;
  CHECK(memory.Find({Call(0x2220, 0x8200)}).empty());
  memory.Remember(kStack);
  CHECK(memory.Find({Call(0x9990, 0x8180), Call(0x2220, 0x8200)}) == Found{0x3330, 0x4440});
  CHECK(memory.Find({Call(0x22f0, 0x8200)}).empty());  // elsewhere, maybe in that function
  CHECK(memory.Find({Call(0x2220, 0x8208)}).empty());
  CHECK(memory.Find({Call(0x4440, KnownCall::kNoCfa)}).empty());  // nothing is outside of it
  CHECK(memory.Find({}).empty());
  CHECK(memory.Find({Call(0x2220, 0x8200)}, {7, 9}).empty());
  CHECK(memory.Find({Call(0x2220, 0x8200)}, {9, 8}).empty());
}

TEST_CASE("of two stacks that differ the one counts that agrees in more calls, and none when both do", "[stitch]") {
  Memory memory;
  memory.Remember(kStack);
  memory.Remember({Call(0x1114, 0x8100), Call(0x2220, 0x8200), Call(0x5550, 0x8300), Call(0x4440, ~0ull)});
  CHECK(memory.Find({Call(0x2220, 0x8200)}).empty());
  CHECK(memory.Find({Call(0x1110, 0x8100), Call(0x2220, 0x8200)}) == Found{0x3330, 0x4440});
  CHECK(memory.Find({Call(0x1114, 0x8100), Call(0x2220, 0x8200)}) == Found{0x5550, 0x4440});
  CHECK(memory.Find({Call(0x1118, 0x8100), Call(0x2220, 0x8200)}).empty());
  memory.Remember({Call(0x2230, 0x8200), Call(0x6660, 0x8300), Call(0x4440, ~0ull)});
  CHECK(memory.Find({Call(0x2230, 0x8200)}) == Found{0x6660, 0x4440});
  CHECK(memory.Find({Call(0x2240, 0x8200)}).empty());
}

TEST_CASE("one equal call does not bring back the outer calls of one that has returned", "[stitch]") {
  const Stack now = {Call(0x1110, 0x8100), Call(0x2220, 0x8200)};
  const auto has_returned = [&](const Stack& seen) {
    Memory memory;
    memory.Remember(kStack);
    REQUIRE_FALSE(memory.Find({now.back()}).empty());
    memory.Observe(seen);
    return memory.Find({now.back()}).empty();
  };
  CHECK_FALSE(has_returned({Call(0x9990, 0x8180), Call(0x2220, 0x8200)}));  // Still there, inside another call or none.
  CHECK_FALSE(has_returned({Call(0x2220, 0x8200)}));
  CHECK_FALSE(has_returned({Call(0x9990, 0x8080)}));  // Too short to tell.
  CHECK_FALSE(has_returned({Call(0x9990, KnownCall::kNoCfa)}));
  CHECK_FALSE(has_returned({}));
  CHECK(has_returned({Call(0x3330, 0x8300)}));                             // Its caller is the innermost.
  CHECK(has_returned({Call(0x9990, 0x8180), Call(0x3330, 0x8300)}));       // Its caller has called another.
  CHECK(has_returned({Call(0x2220, 0x8200), Call(0x3334, 0x8300)}));       // It was called from elsewhere.
  CHECK(has_returned({Call(0x3338, 0x8300), Call(0x4440, ~0ull)}));        // Complete.
  CHECK(has_returned({Call(0x2220, 0x8208)}));
}

TEST_CASE("the outer calls of one that has returned are found if several stacks know no others", "[stitch]") {
  const Stack returned = {Call(0x9990, 0x8400)};
  const Stack one = {Call(0x1110, 0x8100)}, two = {Call(0x0990, 0x8080), Call(0x1110, 0x8100)};
  Memory memory;
  memory.Remember({Call(0x0990, 0x8080), Call(0x1110, 0x8100), Call(0x3330, 0x8300), Call(0x4440, ~0ull)});
  memory.Observe(returned);
  CHECK((memory.Find(one).empty() && memory.Find(two).empty()));
  memory.Remember({Call(0x0990, 0x8080), Call(0x1110, 0x8100), Call(0x3330, 0x8300), Call(0x4440, ~0ull)});
  memory.Observe(returned);
  CHECK(memory.Find(two) == Found{0x3330, 0x4440});
  CHECK(memory.Find({Call(0x0994, 0x8080), Call(0x1110, 0x8100)}).empty());  // Only one call is equal.
  memory.Remember({Call(0x0994, 0x8080), Call(0x1110, 0x8100), Call(0x5550, 0x8300), Call(0x4440, ~0ull)});
  memory.Observe(returned);
  CHECK(memory.Find(two).empty());  // One of them contradicts.

  Stack long_stack;
  for (uint64_t i = 0; i < 9; ++i) long_stack.push_back(Call(0x1000 * (i + 1), 0x8000 + 16 * i));
  long_stack.push_back(Call(0x4440, ~0ull));
  Memory once;
  once.Remember(long_stack);
  once.Observe(returned);
  CHECK(once.Find({long_stack.begin() + 1, long_stack.begin() + 9}) == Found{0x4440});
  CHECK(once.Find({long_stack.begin() + 2, long_stack.begin() + 9}).empty());
}

TEST_CASE("old stacks give way to new ones, and of deep ones the outer calls are kept", "[stitch]") {
  Memory memory;
  memory.Remember(kStack);
  const Stack other = {Call(0x7770, 0x9000), Call(0x4440, ~0ull)};
  for (size_t i = 0; i + 1 < StackStitcher::kStacks; ++i) memory.Remember(other);
  CHECK_FALSE(memory.Find({Call(0x2220, 0x8200)}).empty());
  memory.Remember(other);
  CHECK(memory.Find({Call(0x2220, 0x8200)}).empty());

  Stack deep;
  for (uint64_t i = 0; i < 3 * StackStitcher::kMaxCalls; ++i) deep.push_back(Call(0x100 * i, 0x10000 + 16 * i));
  memory.Remember(deep);
  const size_t kept = 2 * StackStitcher::kMaxCalls;
  CHECK(memory.Find({deep[kept - 1]}).empty());
  CHECK(memory.Find({deep[kept]}).size() == StackStitcher::kMaxCalls - 1);
}

TEST_CASE("threads that end, begin or run another program have no stacks", "[stitch]") {
  Memory memory;
  const auto known = [&](uint32_t tid) { return !memory.Find({Call(0x2220, 0x8200)}, {7, tid}).empty(); };
  const auto remember = [&] {
    for (const uint32_t tid : {7, 8, 9}) memory.Remember(kStack, {7, tid});
    memory.Remember(kStack, {17, 17});
  };
  remember();
  const size_t before = memory.memory.heap_bytes();
  memory.Add(RecordBuilder().U32(7).U32(1).U32(8).U32(1).U64(0), RecordType::kExit);
  CHECK((known(7) && !known(8) && known(9)));
  CHECK(memory.memory.heap_bytes() == before / 4 * 3);
  memory.Add(RecordBuilder().U32(7).U32(7).U32(9).U32(7).U64(0), RecordType::kFork);
  CHECK((known(7) && !known(9)));
  remember();
  memory.Add(RecordBuilder().U32(7).U32(7).Text("name"), RecordType::kComm);
  CHECK((known(7) && known(8) && known(9)));
  memory.Add(RecordBuilder().U32(7).U32(7).Text("name"), RecordType::kComm, kMiscCommExec);
  CHECK((!known(7) && !known(8) && !known(9)));
  CHECK_FALSE(memory.Find({Call(0x2220, 0x8200)}, {17, 17}).empty());
  CHECK(memory.memory.heap_bytes() == before / 4 + kStack.size() * sizeof(KnownCall));  // it had remembered two
}

TEST_CASE("memory is bounded: those threads give way that had no stack for the longest time", "[stitch]") {
  Memory one;
  one.Remember(kStack, {1, 1});
  const size_t each = one.memory.heap_bytes();
  Memory memory(10 * each);
  for (uint32_t tid = 0; tid < 1000; ++tid) {
    memory.Remember(kStack, {1, tid});
    memory.Remember({Call(0x2220, 0x8200), Call(0x3330, ~0ull)}, {1, 0});  // this one is at it always
    REQUIRE(memory.memory.heap_bytes() <= 10 * each);
  }
  CHECK_FALSE(memory.Find({Call(0x2220, 0x8200)}, {1, 0}).empty());
  CHECK_FALSE(memory.Find({Call(0x2220, 0x8200)}, {1, 999}).empty());
  CHECK(memory.Find({Call(0x2220, 0x8200)}, {1, 990}).empty());

  Memory none(each - 1);
  none.Remember(kStack);
  CHECK(none.Find({Call(0x2220, 0x8200)}).empty());
  CHECK(none.memory.heap_bytes() < each);
}

}  // namespace
}  // namespace perfkit
