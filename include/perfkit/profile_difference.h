// The difference of two profiles: which functions take more or less than before, and which changes may be noise.
//
//   auto difference = perfkit::Difference(before, after);
//   fputs(perfkit::FormatReport(*difference, {.min_percent = 1}).c_str(), stdout);
//
// A profile is a sample of what happened: the same program profiled twice gives two sets of numbers. So each change has
// an interval of confidence, and one whose interval holds 0 is noise as far as these samples tell.
//
// What the intervals assume:
//   - Samples are independent of each other. Samples of one thread at a fixed interval are not, if the program does one
//     thing for many intervals and then another: their variance is larger than this, by design_effect. (10 samples in a
//     row that are always in the same phase tell as much as one: a design_effect of 10.)
//   - The load is the same. A different input makes a difference that is real, and not the program's.
// Shares: Newcombe's hybrid of two Wilson intervals (Statistics in Medicine 17, 1998, method 10), with as many samples
// as would have the variance of these, which may have unequal weights. Weights per iteration: the same of two Poisson
// counts. Each function is judged for itself: at 95 %, about 5 of 100 functions that did not change are marked as
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
  std::string event{};  // its name in both profiles; "": the first one of `before`
  // How often the profiled work was done: changes are then of weights per iteration. 0 both: of shares of the total.
  double before_iterations = 0, after_iterations = 0;
  double confidence = 0.95;  // between 0 and 1
  // The variance of a share, as a multiple of that of independent samples. At least 1.
  double design_effect = 1;
};

// A value before and after: a share of the profile's total, from 0 to 1; or, with iterations, a weight per iteration.
struct ProfileChange {
  double before = 0, after = 0;
  double low = 0, high = 0;  // the interval of confidence for change()
  // Samples that the values are made of.
  uint64_t before_samples = 0, after_samples = 0;

  double change() const { return after - before; }
  // The change can't be told from none.
  bool is_noise() const { return low <= 0 && high >= 0; }
};

struct ProfileDifference {
  // A function: by name alone, for a module's path and addresses change when it is built anew. Code without a name is
  // the same if its address in the file is.
  struct Function {
    std::string name;
    std::string module;  // the path of its module; "": unknown
    bool kernel = false;
    ProfileChange self, total;  // report.h says what these are
  };
  // A node of the call tree (CallTree) of both profiles together.
  struct Node {
    uint32_t parent = 0;  // in nodes; the root is its own
    uint32_t first_child = 0, children = 0;
    uint32_t function = UINT32_MAX;  // in functions; UINT32_MAX: the root
    ProfileChange self, total;
  };

  std::string event;
  ProfileUnit unit = ProfileUnit::kCount;
  bool per_iteration = false;  // else changes are of shares
  double confidence = 0;
  Profile::Sum before, after;  // of the event in the two profiles
  // Weights per iteration of the two profiles; with shares 1, or 0 of an empty profile.
  double before_whole = 0, after_whole = 0;
  // Sorted by the change of self: those that can be told from noise first, each part by the size of its change.
  std::vector<Function> functions;
  std::vector<Node> nodes;  // nodes[0] is the root
};

// Errors: InvalidArgument as of Profile::Check(), if a profile has no event of that name or has it in another unit, or
// if an option is out of its range. O(samples + stacks) of both.
absl::StatusOr<ProfileDifference> Difference(const Profile& before, const Profile& after,
                                             const DifferenceOptions& options = {});

// A difference as text: functions by their change of self (ReportOptions::children: of total), in points of percent or
// per iteration, with their intervals; what may be noise has a "~" and comes last; then the calls whose total changed,
// each below the nearest caller that is shown. min_percent is the size of a change, in percent of the total before.
// Options that choose an event, a key, a direction or threads have no meaning here.
std::string FormatReport(const ProfileDifference& difference, const ReportOptions& options = {});

}  // namespace perfkit
