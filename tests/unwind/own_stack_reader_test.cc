// Reads in place never fault, and each page is probed once.
#include "src/unwind/own_stack_reader.h"

#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <random>

namespace perfkit::unwind {
namespace {

constexpr uint64_t kStackPage = 4096;

// `pages` of numbered words, then one page that can't be read.
class Guarded {
 public:
  explicit Guarded(size_t pages) : size_(pages * kStackPage) {
    begin_ = reinterpret_cast<uint64_t>(
        mmap(nullptr, size_ + kStackPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(reinterpret_cast<void*>(end()), kStackPage, PROT_NONE);
    for (uint64_t at = begin(); at < end(); at += 8) *reinterpret_cast<uint64_t*>(at) = at * 3;
  }
  ~Guarded() { munmap(reinterpret_cast<void*>(begin_), size_ + kStackPage); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  uint64_t begin() const { return begin_; }
  uint64_t end() const { return begin_ + size_; }
  void Protect(uint64_t page, int rights) const { mprotect(reinterpret_cast<void*>(page), kStackPage, rights); }

 private:
  size_t size_;
  uint64_t begin_;
};

TEST_CASE("words are read up to the end of what is there", "[live_stack]") {
  const Guarded memory(4);
  const OwnStackReader stack(memory.begin() + 100);
  uint64_t word = 0, wrong = 0;
  for (uint64_t at = memory.begin() + 104; at + 8 <= memory.end(); at += 8) {
    wrong += !stack.Read(at, word) || word != at * 3;
  }
  CHECK(wrong == 0);
  for (uint64_t at = memory.end() - 7; at < memory.end() + 8; ++at) CHECK_FALSE(stack.Read(at, word));
  CHECK(stack.Missing(memory.end(), false) == StackEnd::kUnreadable);
  CHECK_FALSE(stack.Holds(memory.end()));
}

TEST_CASE("parts of words, also over the edge of a page", "[live_stack]") {
  const Guarded memory(2);
  const uint64_t edge = memory.begin() + kStackPage;
  for (unsigned i = 0; i < 8; ++i) *reinterpret_cast<uint8_t*>(edge - 4 + i) = static_cast<uint8_t>(i + 1);
  const OwnStackReader stack(memory.begin());
  CHECK(stack.ReadPart(edge - 4, 8) == 0x0807060504030201);
  CHECK(stack.ReadPart(edge - 1, 3) == 0x060504);
  CHECK(stack.ReadPart(edge, 1) == 5);
  CHECK_FALSE(stack.ReadPart(edge, 0).has_value());
  CHECK_FALSE(stack.ReadPart(edge, 9).has_value());
  CHECK_FALSE(stack.ReadPart(memory.end() - 3, 4).has_value());
}

TEST_CASE("a page is asked for when it is first read, and not again", "[live_stack]") {
  const Guarded memory(3);
  const OwnStackReader stack(memory.begin());
  const uint64_t second = memory.begin() + kStackPage;
  uint64_t word = 0;
  memory.Protect(second, PROT_NONE);
  CHECK(stack.Read(memory.begin(), word));
  CHECK_FALSE(stack.Read(second, word));
  CHECK_FALSE(stack.Read(second + kStackPage, word));  // what is after a hole is no part of this stack
  memory.Protect(second, PROT_READ);
  CHECK(stack.Read(second + kStackPage, word));
}

TEST_CASE("words far away and below are read, too, until the walk settles there", "[live_stack]") {
  const Guarded here(1), there(40);
  OwnStackReader stack(here.begin());
  uint64_t word = 0;
  if (!stack.Read(there.begin() + 30 * kStackPage, word)) return;  // process_vm_readv is not permitted
  CHECK(word == (there.begin() + 30 * kStackPage) * 3);
  CHECK(stack.ReadPart(there.begin(), 8) == there.begin() * 3);
  CHECK_FALSE(stack.Holds(there.begin()));
  stack.Settle(there.begin() + 8);
  for (uint64_t at = there.begin(); at < there.end(); at += 1000) CHECK(stack.Read(at & ~uint64_t{7}, word));
  CHECK(stack.Holds(there.begin()));
  CHECK_FALSE(stack.Read(there.end(), word));
}

TEST_CASE("no address whatever faults", "[live_stack]") {
  const Guarded memory(2);
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    OwnStackReader stack(i % 2 == 0 ? memory.begin() : random());
    uint64_t word = 0;
    const uint64_t at = i % 3 == 0 ? random() >> random() % 64 : memory.begin() - 5000 + random() % 20'000;
    (void)stack.Read(at, word);
    (void)stack.ReadPart(at, static_cast<unsigned>(random() % 10));
    (void)stack.Read(~uint64_t{0} - random() % 9000, word);
    stack.Settle(random());
    (void)stack.Read(at, word);
  }
  SUCCEED();
}

}  // namespace
}  // namespace perfkit::unwind
