// Stacks of fibers of Boost.Context: each ends at the entry of its fiber.
#include <ucontext.h>

#include <boost/context/fiber.hpp>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <utility>

#include "tests/unwind/dwarf/bare_looks.h"

namespace perfkit {
namespace {

#if defined(__x86_64__)

using boost::context::fiber;
using testing::BareLooks;
using testing::BareStack;

// Returns the stack of this call, which is the same by both ways.
[[gnu::noinline]] BareStack LookHere(BareLooks& looks) {
  ucontext_t context;
  if (getcontext(&context) == 0) looks.Take(context);
  return looks.Same();
}

[[gnu::noinline]] void Deeper(int calls, const std::function<void()>& work) {
  if (calls > 0) {
    Deeper(calls - 1, work);
  } else {
    work();
  }
  asm volatile("");  // No tail call.
}

// Runs a function in a fiber until it returns.
[[gnu::noinline]] void InFiber(BareLooks& looks, const std::function<void()>& work) {
  boost::context::fixedsize_stack allocator(64 << 10);
  const boost::context::stack_context stack = allocator.allocate();
  fiber made(std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack), allocator,
             [&](fiber&& caller) {
               work();
               return std::move(caller);
             });
  const uint64_t outside = std::exchange(looks.stack_end, reinterpret_cast<uint64_t>(stack.sp));
  made = std::move(made).resume();
  looks.stack_end = outside;
}

TEST_CASE("the stack of a fiber of Boost.Context has a root, also that of a fiber in a fiber", "[bare]") {
  BareLooks looks;
  BareStack first, deeper, inner, resumed;
  InFiber(looks, [&] {
    first = LookHere(looks);
    Deeper(3, [&] { deeper = LookHere(looks); });
    InFiber(looks, [&] { inner = LookHere(looks); });
    resumed = LookHere(looks);
  });
  for (const BareStack* const found : {&first, &deeper, &inner, &resumed}) {
    INFO(found->Describe());
    CHECK(found->stack.complete());
    CHECK(found->stack.guesses == 0);
    REQUIRE(found->frames.size() >= 3);
    CHECK(found->frames.back().pc == first.frames.back().pc);
  }
  CHECK(deeper.frames.size() > first.frames.size() + 3);
  CHECK(inner.frames.size() == first.frames.size());
  CHECK(resumed.frames.size() == first.frames.size());
}

#endif

}  // namespace
}  // namespace perfkit
