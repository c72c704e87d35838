// The fault table: operation x call x error. Each call that an operation makes fails at its first, second, ... and last
// use, once and from then on, with each error that the call's man page has, and read and write also do less than asked.
//
//   TEST_CASE("Counter: open", "[faults]") {
//     RunFaults("CounterSet::Open", [](Faults& faults) -> absl::Status {
//       faults.Begin();                                   // from here on calls fail
//       auto set = CounterSet::Open({"page-faults"});
//       if (!set.ok()) return set.status();               // refused: fine
//       CHECK(...);                                       // or else each number is right, or said to be missing
//       return absl::OkStatus();
//     });
//   }
//
// After each fault no descriptor and no mapping is left, and the operation succeeds when it is repeated without one.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "tests/support/fake_kernel.h"

namespace perfkit::testing {

// What an operation is told about the faults of its run.
class Faults {
 public:
  // From here on calls are counted, and fail. To be called once.
  virtual void Begin() = 0;
  // Calls do not fail any more, for checks that need them.
  virtual void End() = 0;
  // Whether no call fails in this run: what must then hold may be more.
  virtual bool none() const = 0;

 protected:
  ~Faults() = default;
};

// Runs `operation` with each fault of the table, and checks what each must leave. Adds a row to the file that
// PERFKIT_FAULT_TABLE names; with that, each call that the operation makes must have failed with each of its errors: else
// the table has a hole, which fails the test. The use of a call that fails is one of the first three, the middle one, or
// the last; each one if `each_use` is true, or PERFKIT_FAULT_POSITIONS is set.
void RunFaults(const std::string& name, absl::FunctionRef<absl::Status(Faults&)> operation, bool each_use = false);

}  // namespace perfkit::testing
