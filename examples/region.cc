// The smallest complete program: counts a region of code. This is the README's example.
#include <cstdio>
#include <vector>

#include "perfkit/counter.h"
#include "perfkit/format.h"
#include "perfkit/scope.h"

int main() {
  auto set = perfkit::CounterSet::Open({"task-clock", "page-faults", "context-switches", "instructions"},
                                       perfkit::Target::ThisThread(), {.require_all = false});
  if (!set.ok()) return fprintf(stderr, "%s\n", set.status().ToString().c_str()), 1;

  perfkit::ScopeTotals total;
  for (int i = 0; i < 10; ++i) {
    perfkit::CounterScope scope(*set, total);
    std::vector<int> numbers(1 << 20, i);  // 4 MiB: does malloc give fresh pages each time?
  }
  fputs(perfkit::FormatTable(*set, total).c_str(), stdout);
}
