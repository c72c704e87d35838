// Compares two profiles: which functions cost more or less than before, and which changes may be noise.
//
//   auto difference = perfkit::Difference(before, after);
//   fputs(perfkit::FormatReport(*difference, {.min_percent = 1}).c_str(), stdout);
//
// A profile is a statistical sample: two profiles of the same program differ. So each change has a confidence interval.
// A change whose interval contains 0 may be noise.
//
// The intervals assume:
//   - Samples are independent. Successive samples of a thread are not, if the program stays in a phase for many
//     sampling intervals: then set design_effect. (If each phase has 10 samples, they are worth one: a design_effect
//     of 10.)
//   - The load is the same. Another input makes a real difference that the program did not cause.
//
// Shares of the total: Newcombe's hybrid of two Wilson intervals (Statistics in Medicine 17, 1998, method 10), for the
// effective number of samples if their weights differ. Weights per iteration: the same hybrid for two Poisson counts.
// Each function is tested by itself: at 95 % confidence, about 5 of 100 functions that did not change are reported as
// changed.
#pragma once

#include "perfkit/detail/library_only.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/report.h"

namespace perfkit {

struct DifferenceOptions {
  std::string event{};  // Name of the event in both profiles; "" means the first one of `before`.
  // How often each profiled program did its work: compares weights per iteration. Both 0: compares shares of the total.
  // One alone is InvalidArgument, as are numbers below 1e-30 or above 1e30.
  double before_iterations = 0, after_iterations = 0;
  double confidence = 0.95;  // Between 0 and 1.
  // Variance of a share, divided by the variance that it would have if the samples were independent. From 1 to 1e30.
  double design_effect = 1;
};

// A value before and after: a share of the profile's total, from 0 to 1; or, with iterations, a weight per iteration.
struct ProfileChange {
  double before = 0, after = 0;
  double low = 0, high = 0;                        // Confidence interval of change().
  uint64_t before_samples = 0, after_samples = 0;  // Number of samples that the values sum up.

  double change() const { return after - before; }
  // Returns true if the interval contains 0.
  bool is_noise() const { return low <= 0 && high >= 0; }
};

struct ProfileDifference {
  // A function. Functions of the two profiles are matched by name, and by whether they are the kernel's, because paths
  // and addresses change from build to build; code without a name is matched by its address in the file.
  struct Function {
    std::string name;
    std::string module;  // File name of its module, without folders; "" if unknown.
    bool kernel = false;
    ProfileChange self, total;  // As defined in report.h.
  };
  // A node of the call tree of both profiles together, as CallTree::Node.
  struct Node {
    uint32_t parent = 0;                     // Index in `nodes`; the root is its own parent.
    uint32_t first_child = 0, children = 0;  // Its children are nodes[first_child .. first_child + children).
    uint32_t function = UINT32_MAX;          // Index in `functions`; UINT32_MAX for the root.
    ProfileChange self, total;
  };

  std::string program;  // Profile::program of the profile after.
  std::string event;
  ProfileUnit unit = ProfileUnit::kCount;
  bool per_iteration = false;  // Values are weights per iteration; otherwise shares.
  double confidence = 0;
  Profile::Sum before, after;  // Totals of the event.
  // The totals in the unit of the changes: weights per iteration, or for shares 1 (0 if the profile is empty).
  double before_whole = 0, after_whole = 0;
  // How each profile was made and what is missing in it: the accounting of its FormatReport.
  std::string before_accounting, after_accounting;
  // Sorted by the size of the change of self; those that may be noise come last.
  std::vector<Function> functions;
  std::vector<Node> nodes;  // nodes[0] is the root.
};

// Compares two profiles. Thread-safe while they do not change. O(samples + stacks) of both.
// Errors: InvalidArgument if a profile does not pass Check(), lacks the event or has it in another unit, or if an
// option is out of range.
absl::StatusOr<ProfileDifference> Difference(const Profile& before, const Profile& after,
                                             const DifferenceOptions& options = {});

// Returns the difference as text; WriteDifference (profile_writer.h) writes it as a page. First functions, by their
// change of self (with ReportOptions::children: of total), in percentage points or per iteration, with their intervals;
// changes that may be noise have a "~" and come last. Then calls whose total changed, each below the nearest caller
// that is shown. `min_percent` is the minimum change, in percent of the total before. Ignores the options `event`,
// `key`, `bottom_up`, `by_thread` and `accounting`.
std::string FormatReport(const ProfileDifference& difference, const ReportOptions& options = {});

}  // namespace perfkit
