// Formats a profile as text, and computes the tables of that text.
//
//   fputs(perfkit::FormatReport(profile).c_str(), stdout);
//
//   self   the weight of the samples that were taken in the function itself
//   total  its self, and the weight of samples in functions that it called; recursion counts once
//
// Weights are in their event's unit (ProfileEvent::unit). Inlined calls count as functions. Everything here requires
// Profile::Check(), except FormatReport, which checks. Thread-safe while the profile does not change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/profile.h"

namespace perfkit {

// A function, identified by its name and module. Without a name, each location is a function of its own.
struct ReportFunction {
  uint32_t name = 0;                             // Index in Profile::strings; "" if it has no name.
  uint32_t location = 0;                         // Index in Profile::locations: the first one in the profile.
  uint32_t module = ProfileLocation::kNoModule;  // Index in Profile::modules, or kNoModule.
  // The first known file of its locations: index in Profile::strings, "" if none is known. In a FlatProfile::Row it is
  // chosen by weight.
  uint32_t file = 0;
  uint32_t line = 0;  // In `file`; 0 if unknown.
  bool kernel = false;
};
// Returns the function's name, or Profile::UnnamedCode() of its location.
std::string FunctionName(const Profile& profile, const ReportFunction& function);

struct CallTreeOptions {
  // False: from the outermost calls to the sampled functions. True: from the sampled functions to their callers.
  bool bottom_up = false;
  // The root's children are threads, each with a tree of its own.
  bool by_thread = false;
  // Identifies functions by name, and by whether they are the kernel's, whatever their modules are: for merged profiles
  // of two builds.
  bool by_name = false;
  // Index in Profile::events. Siblings are sorted by their total of this event, the largest first.
  size_t event = 0;
  // Maximum depth; 0 means no limit. The weights of deeper calls are in the self of their ancestor at this depth.
  uint32_t max_depth = 0;
};

// A tree of calls, for all events of a profile. Does not refer to the profile, which is needed for names only. The
// total of a node is exactly its self plus its children's totals, in weights and in samples; the root's is
// Profile::Total.
class CallTree {
 public:
  struct Node {
    uint32_t parent = 0;       // Index in nodes(); the root is its own parent.
    uint32_t first_child = 0;  // Its children are nodes()[first_child .. first_child + children).
    uint32_t children = 0;
    uint32_t function = kNoFunction;  // Index in functions(); kNoFunction for the root and for threads.
    uint32_t thread = kNoThread;      // With by_thread: index in Profile::threads. Otherwise kNoThread.
    bool inlined = false;             // All calls of the node were inlined.
  };
  static constexpr uint32_t kNoFunction = UINT32_MAX, kNoThread = UINT32_MAX;

  // O(samples + stacks); bottom up O(sampled functions x depth of their stacks).
  explicit CallTree(const Profile& profile, const CallTreeOptions& options = {});

  // Returns the nodes: the root first, parents before their children.
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<ReportFunction>& functions() const { return functions_; }
  // Returns the sum of a node's samples that are in none of its children. Top down: samples taken in the function
  // itself; for the root and for threads, samples without a stack. Bottom up: samples whose stack ends at this node,
  // because it has no caller, or none that is known.
  const Profile::Sum& Self(uint32_t node, size_t event) const { return self_[node * events_ + event]; }
  const Profile::Sum& Total(uint32_t node, size_t event) const { return total_[node * events_ + event]; }

 private:
  std::vector<Node> nodes_;
  std::vector<ReportFunction> functions_;
  size_t events_ = 0;
  std::vector<Profile::Sum> self_, total_;  // By node and event.
};

// What a row of a flat table is.
enum class ReportKey : uint8_t {
  kFunction,
  kModule,  // Modules with the same path are one row, whose `module` is the first of them.
  kLine,    // A line of a source file; a function if its lines are unknown.
  kThread,  // Self and total are equal.
  kTask,    // As ProfileSample::task; self and total are equal.
};

struct FlatProfileOptions {
  ReportKey key = ReportKey::kFunction;
  size_t event = 0;        // Index in Profile::events. Rows are sorted by this event, the largest first.
  bool by_total = false;   // Sorts by its total instead of its self.
  bool by_name = false;    // As CallTreeOptions::by_name.
  bool by_thread = false;  // Each thread has rows of its own; no effect with kThread and kTask.
};

// The self and total of each function, module, line, thread or task, for all events of a profile. Does not refer to the
// profile. O(samples + stacks).
class FlatProfile {
 public:
  struct Row {
    // kFunction: the function; its `file` and `line` are those with most of its self weight in all threads, by
    // options.event. kLine: the line, and the first function that has it.
    ReportFunction function{};
    uint32_t module = ProfileLocation::kNoModule;  // Index in Profile::modules, or kNoModule.
    uint32_t thread = UINT32_MAX;                  // kThread, or with by_thread: index in Profile::threads.
    uint32_t task = 0;                             // kTask: as ProfileSample::task.
  };

  explicit FlatProfile(const Profile& profile, const FlatProfileOptions& options = {});

  const std::vector<Row>& rows() const { return rows_; }
  const Profile::Sum& Self(size_t row, size_t event) const { return self_[row * events_ + event]; }
  const Profile::Sum& Total(size_t row, size_t event) const { return total_[row * events_ + event]; }

 private:
  void SortRows(const Profile& profile, const FlatProfileOptions& options);

  std::vector<Row> rows_;
  size_t events_ = 0;
  std::vector<Profile::Sum> self_, total_;  // By row and event.
};

struct ReportOptions {
  // Name of the event that is shown; "" means the first one.
  std::string event{};
  // Functions and calls with less than this share of the event's total are omitted; the report says how many.
  double min_percent = 0.5;
  // Maximum lines of each table; 0 means no limit. The report says how many lines were omitted. For a call tree,
  // min_percent is raised until the tree fits; a row of calls without branches is shown whole, so it may exceed that.
  size_t max_lines = 80;
  // Sorts the flat table by total instead of self, as `perf report --children` does.
  bool children = false;
  bool accounting = true;                // Show how the profile was made.
  bool call_tree = true;                 // Show the call tree.
  bool bottom_up = false;                // As CallTreeOptions::bottom_up, at most 128 calls deep.
  bool by_thread = false;                // Separate threads in the flat table and the call tree.
  ReportKey key = ReportKey::kFunction;  // Rows of the flat table.
  // Columns of text, at least 100. Longer names are cut in the middle.
  size_t width = 120;
};

// Returns the profile as text, in the manner of `perf report --stdio`:
//   accounting   for each event: total of the profile, samples, the kernel's count, lost samples, unsampled (for
//                clocks: the share of the time that no sample stands for); the quality of the stacks; notes
//   flat table   self and total of each function, as shares of the event's total
//   call tree    total and self of each call. A line without a branch is called by the line above it. Of more than 25
//                such lines in a row, only the first 16, the last 8, and those with a self of min_percent are shown
//   threads      one line each: its share, and its time on and off the CPU
//   tasks        one line for each path (ProfileSample::task), if samples have tasks: its share, its time off the CPU
//   waits        what threads waited for while off the CPU, if that was recorded
// "-" means that a number is not known. If the profile lacks the event or does not pass Check(), returns the error's
// text.
std::string FormatReport(const Profile& profile, const ReportOptions& options = {});

}  // namespace perfkit
