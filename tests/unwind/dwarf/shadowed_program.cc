// A program that keeps a shadow of its own stack (-finstrument-functions), for tests that stop at every instruction.
//
// Compiled by the tests, with several compilers and options: as a program that is traced (stepped_test.cc), and as a
// library whose stack is walked by the thread itself, in the handler of each trap (live_stepped_test.cc). Functions
// come in the shapes that make unwinding hard: alloca, realigned stacks, recursion, calls through a lazy PLT, throws,
// signal handlers.
#include <alloca.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

// The return addresses of all instrumented calls, outermost first. The entry is written before the depth.
struct Shadow {
  volatile unsigned long state;  // 1: begun, 2: over
  volatile unsigned long depth;
  void* volatile call_sites[62];
};
extern "C" Shadow shadow;
Shadow shadow;

#define HOOK extern "C" __attribute__((no_instrument_function, used))
HOOK void __cyg_profile_func_enter(void*, void* call_site) {
  shadow.call_sites[shadow.depth] = call_site;
  shadow.depth = shadow.depth + 1;
}
HOOK void __cyg_profile_func_exit(void*, void*) { shadow.depth = shadow.depth - 1; }

namespace {

#define CALL __attribute__((noinline, used))

volatile int sink;

CALL int Leaf(int x) { return x * 3 + sink; }

CALL int ManyArguments(int a, int b, int c, int d, int e, int f, int g, int h) {
  const int one = Leaf(a + b), two = Leaf(c + d), three = Leaf(e + f);
  return one * two + three * g + h;
}

CALL int Recursion(int depth) {
  if (depth == 0) return Leaf(1);
  volatile char room[40];
  room[depth] = static_cast<char>(depth);
  return Recursion(depth - 1) + room[depth];
}

CALL int WithAlloca(int size) {
  char* const memory = static_cast<char*>(alloca(static_cast<size_t>(size)));
  memset(memory, 1, static_cast<size_t>(size));
  return Leaf(memory[size / 2]) + ManyArguments(1, 2, 3, 4, 5, 6, memory[1], memory[2]);
}

CALL int Realigned(int size) {
  alignas(64) volatile int numbers[16] = {size};
  char* const memory = static_cast<char*>(alloca(static_cast<size_t>(size)));
  memory[0] = static_cast<char>(numbers[0]);
  return Leaf(memory[0]) + WithAlloca(size) + numbers[0];
}

CALL int Compare(const void* a, const void* b) { return *static_cast<const int*>(a) - *static_cast<const int*>(b); }

CALL int CalledBack() {
  int numbers[6] = {5, 3, 6, 1, 2, 4};
  qsort(numbers, 6, sizeof(int), Compare);
  return numbers[0];
}

#ifdef WITH_THROW
struct Cleanup {
  CALL ~Cleanup() { sink = sink + 1; }
};
CALL int Throwing(int depth) {
  const Cleanup cleanup;
  if (depth == 0) throw 1;
  return Throwing(depth - 1) + Leaf(depth);
}
CALL int Catching() {
  try {
    return Throwing(1);
  } catch (int) {
    return Leaf(7);
  }
}
#else
CALL int Catching() { return 0; }
#endif

// Continues after the ud2 that raised it. A tracer steps on; in a handler the trap flag has to be set again.
CALL void OnSignal(int, siginfo_t*, void* context) {
#ifdef AS_LIBRARY
  asm volatile("int3");
#endif
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += 2;
  sink = Recursion(2);
}

CALL int Interrupted() {
  asm volatile("ud2");
  return Leaf(2);
}

alignas(16) char other_stack[64 << 10];

CALL int Signalled(int flags) {
  const stack_t stack = {other_stack, 0, sizeof(other_stack)};
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = OnSignal;
  action.sa_flags = SA_SIGINFO | flags;
  sigaction(SIGILL, &action, nullptr);
  return Interrupted();
}

CALL int Body() {
  int sum = Recursion(5) + Realigned(100) + CalledBack() + Catching();
  sum += Signalled(0) + Signalled(SA_ONSTACK);
  return sum;
}

}  // namespace

#ifdef AS_LIBRARY
#define main RunShadowed
extern "C" int RunShadowed();
#endif
__attribute__((no_instrument_function)) int main() {
  shadow.state = 1;
  asm volatile("int3" ::"D"(&shadow));
  sink = Body();
  shadow.state = 2;
  return 0;
}
