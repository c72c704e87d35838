// Reports: a profile as text, and the tables that the text is made of.
//
//   fputs(perfkit::FormatReport(profile).c_str(), stdout);
//
// Two words have one meaning everywhere here:
//   self   the weight of the samples that were taken in a function itself
//   total  that, and the weight of the samples in all that it called; a function that calls itself counts once
// A weight is in its event's unit (ProfileEvent::unit); beside it stands the number of samples that it is the sum of.
// Inlined calls are functions of their own. All requires Profile::Check(). Thread-safe while the profile is
// not changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/profile.h"

namespace perfkit {

// A function as reports tell it from others: by name and module. Code without a name is one "function" each location.
struct ReportFunction {
  uint32_t name = 0;                             // in Profile::strings; 0: it has none
  uint32_t location = 0;                         // in Profile::locations: the first one seen
  uint32_t module = ProfileLocation::kNoModule;  // in Profile::modules
  uint32_t file = 0, line = 0;                   // where it was first seen, or FlatProfile says better; 0: unknown
  bool kernel = false;
};
// The function's name, or Profile::UnnamedCode() of its location.
std::string FunctionName(const Profile& profile, const ReportFunction& function);

struct CallTreeOptions {
  // False: from the outermost calls to the sampled ones. True: from the sampled functions to their callers.
  bool bottom_up = false;
  // The root's children are threads, each with a tree of its own.
  bool by_thread = false;
  // Functions of one name are the same one, whatever their modules are: for profiles of two builds that were merged.
  bool by_name = false;
  // Siblings are sorted by the total of this event, the largest first: an index in Profile::events.
  size_t event = 0;
  // Calls below this depth are part of their caller's self (bottom_up: callers, of what they called). 0: no limit.
  uint32_t max_depth = 0;
};

// Who called what, for all events of a profile at once. A value of its own: it needs the profile for names only.
// In each node, self + the children's totals = total, for weights and for samples; the root's total is Profile::Total.
class CallTree {
 public:
  struct Node {
    uint32_t parent = 0;       // in nodes(); the root is its own
    uint32_t first_child = 0;  // its children are nodes()[first_child .. first_child + children)
    uint32_t children = 0;
    uint32_t function = kNoFunction;  // in functions(); kNoFunction: the root or a thread
    uint32_t thread = kNoThread;      // in Profile::threads, with by_thread
    bool inlined = false;             // each of these calls was inlined
  };
  static constexpr uint32_t kNoFunction = UINT32_MAX, kNoThread = UINT32_MAX;

  // O(samples + stacks); bottom up O(functions that were sampled, times their stacks' depth).
  explicit CallTree(const Profile& profile, const CallTreeOptions& options = {});

  // nodes()[0] is the root; parents come before their children.
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<ReportFunction>& functions() const { return functions_; }
  // Samples of a node that are in none of its children. Top down: those taken in the function itself; of the root and
  // of threads, samples without a stack. Bottom up: those whose stack ends here, because nothing called it, or because
  // its caller is unknown.
  const Profile::Sum& Self(uint32_t node, size_t event) const { return self_[node * events_ + event]; }
  const Profile::Sum& Total(uint32_t node, size_t event) const { return total_[node * events_ + event]; }

 private:
  std::vector<Node> nodes_;
  std::vector<ReportFunction> functions_;
  size_t events_ = 0;
  std::vector<Profile::Sum> self_, total_;  // by node and event
};

// The lines of a flat table: which samples are added up.
enum class ReportKey : uint8_t {
  kFunction,
  kModule,
  kLine,    // of a source file; where that is unknown, a function
  kThread,  // self and total are the same
};

struct FlatProfileOptions {
  ReportKey key = ReportKey::kFunction;
  size_t event = 0;       // rows are sorted by this event: an index in Profile::events
  bool by_total = false;  // by its total instead of its self
  bool by_name = false;   // as of CallTreeOptions
  // Each thread has rows of its own.
  bool by_thread = false;
};

// Self and total of each function, module, line or thread, for all events of a profile at once. O(samples + stacks).
class FlatProfile {
 public:
  struct Row {
    // kFunction, kLine: the function; of kLine, the first one that has the line. `file` and `line` are where most of
    // the function's self weight is, of options.event.
    ReportFunction function{};
    uint32_t module = ProfileLocation::kNoModule;  // in Profile::modules
    uint32_t thread = UINT32_MAX;                  // in Profile::threads, of kThread and with by_thread
  };

  explicit FlatProfile(const Profile& profile, const FlatProfileOptions& options = {});

  const std::vector<Row>& rows() const { return rows_; }
  const Profile::Sum& Self(size_t row, size_t event) const { return self_[row * events_ + event]; }
  const Profile::Sum& Total(size_t row, size_t event) const { return total_[row * events_ + event]; }

 private:
  void SortRows(const Profile& profile, const FlatProfileOptions& options);

  std::vector<Row> rows_;
  size_t events_ = 0;
  std::vector<Profile::Sum> self_, total_;  // by row and event
};

struct ReportOptions {
  // The event that is shown: a name in Profile::events. "": the first one.
  std::string event{};
  // Functions and calls with less than this share of the event's total are left out; the report says how many.
  double min_percent = 0.5;
  // Lines of each table; 0: no limit. The report says how many more there are. Where a call tree would be longer, the
  // share that a call needs is raised until it fits.
  size_t max_lines = 80;
  // The flat table is sorted by total, as of `perf report --children`, instead of by self.
  bool children = false;
  bool accounting = true;  // show how the profile was made; false: for another event of a profile that was shown
  bool call_tree = true;   // show it
  bool bottom_up = false;  // the call tree goes from the sampled functions to their callers
  bool by_thread = false;  // the flat table and the call tree have each thread on its own
  ReportKey key = ReportKey::kFunction;
  // Columns of text, at least 100; names that do not fit are cut in the middle.
  size_t width = 120;
};

// A profile as text, for people who read `perf report --stdio`:
//   how it was made   each event: total (of the profile), samples, counted (by the kernel), lost (samples), unsampled
//   (the
//                     share of a clock's time that no sample stands for); how good the stacks are; notes
//   flat table        self and total of each function as shares of the event's total
//   call tree         total and self of each call; a line without a branch before it is called by the line above it;
//                     where hundreds of calls do nothing but call the next one, only the first and the last are shown
//   threads           by name, with their time on and off the CPU
//   waits             what threads waited for while they were off their CPUs, if that was recorded
// "-" is a number that is not known. An event that the profile does not have, or a profile that does not pass its
// check, gives the error's text.
std::string FormatReport(const Profile& profile, const ReportOptions& options = {});

}  // namespace perfkit
