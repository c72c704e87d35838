// Frames of code without information: those that the walk takes by cached rules are those that it finds without.
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "perfkit/unwinder.h"
#include "tests/support/skip.h"
#include "tests/unwind/dwarf/sampled/hand_sample.h"

namespace perfkit {
namespace {

using testing::HandSample;
using testing::ThisMachine;

constexpr uint64_t kLowest = 0x7ffc'0000'1000;
constexpr size_t kStackWords = 120;

// Executable memory without a file, as JIT compilers have it; or of a file that can't be opened by its name.
class GeneratedCode {
 public:
  explicit GeneratedCode(bool in_file = false) {
    const int file = in_file ? memfd_create("lost", MFD_CLOEXEC) : -1;
    REQUIRE((!in_file || ftruncate(file, kBytes) == 0));
    memory_ = mmap(nullptr, kBytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | (in_file ? 0 : MAP_ANONYMOUS), file, 0);
    if (in_file) close(file);
    REQUIRE(memory_ != MAP_FAILED);
  }
  ~GeneratedCode() { munmap(memory_, kBytes); }
  GeneratedCode(const GeneratedCode&) = delete;
  GeneratedCode& operator=(const GeneratedCode&) = delete;

  uint64_t At(uint64_t random) const { return reinterpret_cast<uint64_t>(memory_) + 1 + random % 8 * 16; }

 private:
  static constexpr size_t kBytes = 4096;
  void* memory_ = MAP_FAILED;
};

[[gnu::noinline]] uint64_t AfterThisCall() { return reinterpret_cast<uint64_t>(__builtin_return_address(0)); }

// Returns the address after the call in the program's first function, whose caller is undefined; 0 if it is not known.
uint64_t AfterCallOfRoot() {
  const uint64_t entry = getauxval(AT_ENTRY);
  for (uint64_t at = entry; !ThisMachine::kLinkRegister && at < entry + 48; ++at) {
    const auto* const bytes = reinterpret_cast<const uint8_t*>(at);
    if (bytes[0] == 0xff && bytes[1] == 0x15) return at + 6;
  }
  return 0;
}

struct GuessWords {
  GeneratedCode generated;
  std::mt19937_64 random{11};
  std::vector<uint64_t> known = {AfterThisCall(),
                                 AfterThisCall(),
                                 AfterThisCall() + 3,
                                 AfterCallOfRoot(),
                                 reinterpret_cast<uint64_t>(&AfterThisCall),
                                 getauxval(AT_ENTRY),
                                 0,
                                 1,
                                 UINT64_MAX};

  uint64_t InStack() { return kLowest + random() % kStackWords * 8 + (random() % 32 == 0 ? 4 : 0); }
  uint64_t Any() {
    switch (random() % 8) {
      case 0:
      case 1: return InStack();
      case 2:
      case 3: return generated.At(random());
      case 4: return known[random() % known.size()];
      case 5: return random();
      default: return random() % 1000;
    }
  }
  // A chain of frame pointers through the stack, between other words.
  std::vector<uint64_t> Stack(uint64_t& fp) {
    std::vector<uint64_t> words(kStackWords);
    for (uint64_t& word : words) word = Any();
    size_t at = random() % 12;
    fp = random() % 16 == 0 ? Any() : kLowest + at * 8;
    while (at + 20 < kStackWords) {
      const size_t next = at + 2 + random() % 14;
      words[at] = random() % 16 == 0 ? Any() : kLowest + next * 8;
      words[at + 1] = random() % 4 == 0 ? known[random() % known.size()] : generated.At(random());
      at = next;
    }
    return words;
  }
};

TEST_CASE("a frame pointer that leads to a call is followed, not a word that points into the root", "[guesses]") {
  const GuessWords words;
  const GeneratedCode lost(true);
  const uint64_t call = words.known[0], root = words.known[3], generated = words.generated.At(2);
  if (root == 0) SKIP_TEST("the first function of this program has no call that is known");
  Unwinder unwinder;
  REQUIRE(unwinder.AddProcess(getpid()).ok());
  std::vector<StackFrame> frames(16);
  for (const uint64_t caller : {call, generated, lost.At(0), call + 1, uint64_t{1000}}) {
    // Two frames of generated code: the one that was interrupted, and its caller, which is looked up in the cache.
    const uint64_t stack[] = {1, 2, kLowest + 40, words.generated.At(1), root, kLowest + 72, caller, 3, 4, 0, 5};
    testing::FullRegisters registers;
    registers.Set(ThisMachine::kPc, words.generated.At(0));
    registers.Set(ThisMachine::kSp, kLowest);
    registers.Set(ThisMachine::kFp, kLowest + 16);
    const HandSample sample(static_cast<uint32_t>(getpid()), registers,
                            std::string(reinterpret_cast<const char*>(stack), sizeof(stack)));
    const bool leads = caller != call + 1 && caller != 1000;
    for (int again = 0; again < 3; ++again) {
      INFO(std::hex << caller << ", time " << again);
      const UnwoundStack found = unwinder.Unwind(sample.sample(), frames);
      REQUIRE(found.frames >= 3);
      CHECK((frames[1].pc == words.generated.At(1) && frames[1].is_guess));
      CHECK((frames[2].pc == (leads ? caller : root) && frames[2].is_guess));
      CHECK(found.complete() == !leads);
    }
  }
}

TEST_CASE("a walk through generated code finds what it finds frame by frame", "[guesses]") {
  GuessWords words;
  std::optional<Unwinder> fast;
  Unwinder slow({.stitch_bytes = 1});  // Remembers no stacks, and takes no fast path.
  REQUIRE(slow.AddProcess(getpid()).ok());
  std::vector<StackFrame> found(64), expected(64);
  size_t different = 0, guesses = 0, roots = 0, deep = 0;
  for (int i = 0; i < 20'000; ++i) {
    // Often a new one at first, which knows little.
    if (i % 20 == 0 && i < 2'000) REQUIRE(fast.emplace().AddProcess(getpid()).ok());
    uint64_t fp = 0;
    const std::vector<uint64_t> stack = words.Stack(fp);
    testing::FullRegisters registers;
    registers.Set(ThisMachine::kPc, words.random() % 2 == 0 ? words.generated.At(words.random()) : words.known[1]);
    registers.Set(ThisMachine::kSp, kLowest);
    registers.Set(ThisMachine::kFp, fp);
    const std::string bytes(reinterpret_cast<const char*>(stack.data()), stack.size() * sizeof(uint64_t));
    const HandSample sample(static_cast<uint32_t>(getpid()), registers, bytes);
    const std::span room = std::span(found).first(words.random() % 8 == 0 ? words.random() % 9 : found.size());
    const UnwoundStack by_cache = fast->Unwind(sample.sample(), room);
    const UnwoundStack by_step = slow.Unwind(sample.sample(), std::span(expected).first(room.size()));
    const bool same =
        by_cache == by_step && std::equal(found.begin(), found.begin() + by_cache.frames, expected.begin());
    if (!same && different++ == 0) {
      UNSCOPED_INFO("stack " << i << ": " << by_cache.frames << " frames and " << StackEndName(by_cache.end)
                             << ", step by step " << by_step.frames << " and " << StackEndName(by_step.end));
    }
    guesses += by_step.guesses;
    roots += by_step.end == StackEnd::kRoot;
    deep += by_step.frames > 4;
  }
  CHECK(different == 0);
  CHECK(guesses > 10'000);
  CHECK(deep > 1'000);
  if (words.known[3] != 0) CHECK(roots > 20);
}

}  // namespace
}  // namespace perfkit
