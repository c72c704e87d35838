// Flat profiles. The samples of a profile are one tree of frames (FrameTree), and each frame has a row: its function,
// module or line. A row's self weight is the sum over its frames. Its total is the sum over the subtrees of those of
// its frames that have no frame of the same row above them, so that recursion counts once; one walk of the tree finds
// them, with a count of open frames for each row. If threads have rows of their own, each stack is walked instead,
// because a thread has few of the frames.
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "perfkit/report.h"
#include "src/profile/frame_tree.h"
#include "src/profile/function_index.h"
#include "src/profile/pair_index.h"

namespace perfkit {
namespace {

using profile::Add;
using profile::FrameTree;
using profile::FunctionIndex;
using profile::kNone;
using profile::PairIndex;
using profile::Sums;
using Row = FlatProfile::Row;

// Rows, and the row of each frame. `row_of` is what the three keys (function, module, line) differ in; all sums are
// made from it in the same way.
struct RowsOfFrames {
  std::vector<Row> rows;
  std::vector<uint32_t> row_of;
};

RowsOfFrames ByFunction(const Profile& profile, const FrameTree& tree, bool by_name) {
  FunctionIndex index(profile, by_name);
  RowsOfFrames result{.row_of = FunctionsOf(tree, index)};
  for (const ReportFunction& function : index.functions()) {
    result.rows.push_back({.function = function, .module = function.module});
  }
  return result;
}

// Modules of one path are one row, whatever their build ids are.
RowsOfFrames ByModule(const Profile& profile, const FrameTree& tree) {
  RowsOfFrames result;
  PairIndex index;
  for (const FrameTree::Node& frame : tree.frames()) {
    const uint32_t module = profile.locations[frame.location].module;
    const uint64_t path = module == ProfileLocation::kNoModule ? UINT64_MAX : profile.modules[module].path;
    const auto [entry, is_new] = index.try_emplace({path, 0}, static_cast<uint32_t>(result.rows.size()));
    if (is_new) result.rows.push_back({.module = module});
    result.row_of.push_back(entry->second);
  }
  return result;
}

RowsOfFrames ByLine(const Profile& profile, const FrameTree& tree, bool by_name) {
  FunctionIndex functions(profile, by_name);
  RowsOfFrames result;
  PairIndex index;
  for (const FrameTree::Node& frame : tree.frames()) {
    const uint32_t function = functions.Of(frame);
    const ProfileCall call = frame.call == kNone ? ProfileCall{} : profile.calls[frame.call];
    // Code without a line is one row a function, and its key can't be one of a line: no file has number UINT64_MAX.
    const bool known = call.file != 0 && call.line != 0;
    const auto [entry, is_new] =
        index.try_emplace(known ? profile::PairKey{call.file, call.line} : profile::PairKey{UINT64_MAX, function},
                          static_cast<uint32_t>(result.rows.size()));
    if (is_new) {
      result.rows.push_back(
          {.function = functions.functions()[function], .module = profile.locations[frame.location].module});
      result.rows.back().function.file = known ? call.file : 0;
      result.rows.back().function.line = known ? call.line : 0;
    }
    result.row_of.push_back(entry->second);
  }
  return result;
}

RowsOfFrames RowsBy(const FlatProfileOptions& options, const Profile& profile, const FrameTree& tree) {
  switch (options.key) {
    case ReportKey::kModule: return ByModule(profile, tree);
    case ReportKey::kLine: return ByLine(profile, tree, options.by_name);
    case ReportKey::kFunction:
    case ReportKey::kThread:
    case ReportKey::kTask: break;
  }
  return ByFunction(profile, tree, options.by_name);
}

// Replaces each function's file and line by those with the most self weight of `event`.
void FindHotLines(const Profile& profile, const FrameTree& tree, const Sums& self, size_t event, RowsOfFrames& rows) {
  std::vector<uint64_t> most(rows.rows.size());
  std::vector<uint64_t> weights;
  PairIndex index;
  for (size_t i = 0; i < tree.frames().size(); ++i) {
    const uint32_t call = tree.frames()[i].call;
    const uint64_t weight = self[i * profile.events.size() + event].weight;
    if (call == kNone || weight == 0 || profile.calls[call].line == 0) continue;
    const ProfileCall& at = profile.calls[call];
    const auto [entry, is_new] = index.try_emplace({rows.row_of[i], uint64_t{at.file} << 32 | at.line}, weights.size());
    if (is_new) weights.push_back(0);
    const uint64_t sum = weights[entry->second] += weight;
    if (sum <= most[rows.row_of[i]]) continue;
    most[rows.row_of[i]] = sum;
    rows.rows[rows.row_of[i]].function.file = at.file;
    rows.rows[rows.row_of[i]].function.line = at.line;
  }
}

// The totals of rows from sums over subtrees.
Sums TotalsOf(const FrameTree& tree, const RowsOfFrames& rows, const Sums& subtrees, size_t events) {
  Sums totals(rows.rows.size() * events);
  std::vector<uint32_t> open(rows.rows.size());  // frames of the path that are of this row
  tree.Walk(
      [&](uint32_t frame) {
        const uint32_t row = rows.row_of[frame];
        if (open[row]++ != 0) return;
        for (size_t event = 0; event < events; ++event) {
          Add(totals[row * events + event], subtrees[frame * events + event]);
        }
      },
      [&](uint32_t frame) { --open[rows.row_of[frame]]; });
  return totals;
}

struct Table {
  std::vector<Row> rows{};
  Sums self{}, total{};
};

// The table of all threads: frames summed up from the innermost ones outwards.
Table TableOf(const Profile& profile, const FrameTree& tree, RowsOfFrames frames, Sums sums) {
  const size_t events = profile.events.size();
  Table table{.self = Sums(frames.rows.size() * events)};
  for (size_t i = 0; i < sums.size(); ++i) Add(table.self[frames.row_of[i / events] * events + i % events], sums[i]);
  tree.AddToParents(sums);
  table.total = TotalsOf(tree, frames, sums, events);
  table.rows = std::move(frames.rows);
  return table;
}

// The table with rows for each thread, which has only some of the frames: each of its stacks is walked once.
Table TableByThread(const Profile& profile, const FrameTree& tree, const RowsOfFrames& frames) {
  const size_t events = profile.events.size();
  Table table;
  PairIndex index;  // by thread and row of the frames
  const auto row_of = [&](uint32_t thread, uint32_t frame) {
    const uint32_t row = frames.row_of[frame];
    const auto [entry, is_new] = index.try_emplace({thread, row}, table.rows.size());
    if (!is_new) return size_t{entry->second};
    table.rows.push_back(frames.rows[row]);
    table.rows.back().thread = thread;
    table.self.resize(table.self.size() + events);
    table.total.resize(table.total.size() + events);
    return table.rows.size() - 1;
  };
  // By row of the frames, the last stack that counted for it: recursion counts once a stack.
  std::vector<size_t> last_sum(frames.rows.size(), SIZE_MAX);
  const std::vector<profile::StackSum> sums = StackSums(profile, tree, true);
  for (size_t i = 0; i < sums.size(); ++i) {
    const profile::StackSum& sum = sums[i];
    if (sum.leaf != kNone) Add(table.self[row_of(sum.thread, sum.leaf) * events + sum.event], sum.sum);
    for (uint32_t at = sum.leaf; at != kNone; at = tree.frames()[at].parent) {
      if (std::exchange(last_sum[frames.row_of[at]], i) == i) continue;
      Add(table.total[row_of(sum.thread, at) * events + sum.event], sum.sum);
    }
  }
  return table;
}

// The table of what each sample has one of. `of`: the member of a sample that is its row; `names`: that of a row.
Table TableOfSamples(const Profile& profile, size_t rows, uint32_t ProfileSample::*of, uint32_t Row::*names) {
  const size_t events = profile.events.size();
  Table table{.self = Sums(rows * events)};
  for (uint32_t i = 0; i < rows; ++i) table.rows.emplace_back().*names = i;
  for (const ProfileSample& sample : profile.samples) {
    Add(table.self[sample.*of * events + sample.event], {sample.weight, sample.samples});
  }
  table.total = table.self;
  return table;
}

std::string SortName(const Profile& profile, const Row& row, ReportKey key) {
  const std::string thread = row.thread == UINT32_MAX ? "" : profile.strings[profile.threads[row.thread].name];
  if (key == ReportKey::kTask) return profile.strings[row.task];
  return key == ReportKey::kThread ? thread : FunctionName(profile, row.function) + '\n' + thread;
}

}  // namespace

FlatProfile::FlatProfile(const Profile& profile, const FlatProfileOptions& options) : events_(profile.events.size()) {
  Table table;
  if (options.key == ReportKey::kThread) {
    table = TableOfSamples(profile, profile.threads.size(), &ProfileSample::thread, &Row::thread);
  } else if (options.key == ReportKey::kTask) {
    table = TableOfSamples(profile, profile.strings.size(), &ProfileSample::task, &Row::task);
  } else {
    const FrameTree tree(profile);
    RowsOfFrames rows = RowsBy(options, profile, tree);
    Sums sums = tree.SelfSums();
    if (options.key == ReportKey::kFunction && events_ != 0) {
      FindHotLines(profile, tree, sums, options.event, rows);
    }
    table = options.by_thread ? TableByThread(profile, tree, rows)
                              : TableOf(profile, tree, std::move(rows), std::move(sums));
  }
  rows_ = std::move(table.rows);
  self_ = std::move(table.self);
  total_ = std::move(table.total);
  SortRows(profile, options);
}

void FlatProfile::SortRows(const Profile& profile, const FlatProfileOptions& options) {
  // Leaves out rows that no sample touched: tables and merged profiles keep functions whose samples were filtered out.
  if (events_ == 0) return rows_.clear();
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    const auto first = total_.begin() + static_cast<ptrdiff_t>(i * events_);
    const bool used = std::any_of(first, first + static_cast<ptrdiff_t>(events_),
                                  [](const Profile::Sum& sum) { return sum.weight != 0 || sum.samples != 0; });
    if (used) order.push_back(i);
  }
  const auto weights = [&](uint32_t row) {
    const uint64_t self = Self(row, options.event).weight, total = Total(row, options.event).weight;
    return options.by_total ? std::pair(total, self) : std::pair(self, total);
  };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const auto of_a = weights(a), of_b = weights(b);
    if (of_a != of_b) return of_a > of_b;
    // Names and row numbers decide between equal weights, so that equal profiles have equal reports.
    const std::string name_a = SortName(profile, rows_[a], options.key),
                      name_b = SortName(profile, rows_[b], options.key);
    return std::tie(name_a, a) < std::tie(name_b, b);
  });
  std::vector<Row> rows;
  Sums self, total;
  for (const uint32_t row : order) {
    rows.push_back(rows_[row]);
    for (size_t event = 0; event < events_; ++event) {
      self.push_back(Self(row, event));
      total.push_back(Total(row, event));
    }
  }
  rows_ = std::move(rows);
  self_ = std::move(self);
  total_ = std::move(total);
}

}  // namespace perfkit
