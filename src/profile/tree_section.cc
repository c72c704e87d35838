// The call tree of a report.
//
//    total %   self %  function
//     100.00     0.00  main
//      90.00    30.00  |-Work              siblings have a branch before them
//      60.00    60.00  | Hot               an only child has none, and stands below its caller: deep stacks stay narrow
//       8.00     8.00  `-[libbare.so]+0x1234
//
// Calls that have one child each are a chain. It is printed at once: a function that calls itself again and again is
// one line, and of very long chains the middle is left out, so that they leave room for what else there is.
#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "src/profile/report_sections.h"
#include "src/profile/text_table.h"

namespace perfkit::profile {
namespace {

enum class Branch : uint8_t { kNone, kMore, kLast };

// A node to be printed, and what stands before its branch.
struct Entry {
  std::string prefix{};
  uint32_t node = 0;
  Branch branch = Branch::kNone;
};

// One line of a chain.
struct Link {
  uint32_t node = 0;
  uint64_t self = 0;
  uint64_t levels = 1;  // more: calls of itself
};

class TreePrinter {
 public:
  TreePrinter(const ReportContext& context, const CallTree& tree) : context_(context), tree_(tree) {}

  // The tree, with the smallest share from `min_percent` on with which it has at most max_lines.
  std::string Print() {
    constexpr double kMaxPercent = 50, kStep = 1.25;
    // Cutting the text at max_lines would show one deep branch and hide the next heavy one.
    for (min_percent_ = context_.options.min_percent; !Render() && min_percent_ < kMaxPercent;) {
      min_percent_ = std::max(min_percent_, 0.01) * kStep;
    }
    // Nodes without weight of this event are no calls that were left out.
    uint64_t all = 0;
    for (uint32_t i = 1; i < tree_.nodes().size(); ++i) all += Weight(i) != 0 ? 1 : 0;
    if (all == shown_) return text_;
    return text_ + absl::StrFormat("# %s more calls, below %.2f %% (min_percent, max_lines)\n", CountText(all - shown_),
                                   min_percent_);
  }

 private:
  uint64_t Weight(uint32_t node) const { return tree_.Total(node, context_.event).weight; }

  bool IsShown(uint64_t weight) const {
    return weight != 0 &&
           100 * static_cast<double>(weight) >= min_percent_ * static_cast<double>(context_.total.weight);
  }

  // Siblings are sorted: those that are shown come first.
  uint32_t ShownChildren(uint32_t node) const {
    const CallTree::Node& at = tree_.nodes()[node];
    uint32_t shown = 0;
    while (shown < at.children && IsShown(Weight(at.first_child + shown))) ++shown;
    return shown;
  }

  // Returns false if there was no room for all that is to be shown.
  bool Render() {
    text_.clear();
    lines_ = shown_ = 0;
    std::vector<Entry> open;
    OpenChildren(0, "", open);
    while (!open.empty()) {
      if (context_.IsFull(lines_)) return false;
      const Entry entry = open.back();
      open.pop_back();
      const std::vector<Link> chain = Chain(entry.node);
      const std::string after = After(entry);
      PrintChain(entry, after, chain);
      // A link that calls itself is several levels of the tree: the entries below are those of its innermost one.
      uint32_t last = chain.back().node;
      for (uint64_t level = 1; level < chain.back().levels; ++level) last = tree_.nodes()[last].first_child;
      OpenChildren(last, after, open);
    }
    return true;
  }

  // What stands before the lines below an entry.
  static std::string After(const Entry& entry) {
    constexpr size_t kMaxIndent = 40;
    // Deeper branches are no longer indented: the text would have no room for names.
    if (entry.prefix.size() >= kMaxIndent) return entry.prefix;
    const std::string_view bar = entry.branch == Branch::kMore ? "| " : entry.branch == Branch::kLast ? "  " : "";
    return entry.prefix + std::string(bar);
  }

  void OpenChildren(uint32_t node, const std::string& prefix, std::vector<Entry>& open) const {
    const uint32_t shown = ShownChildren(node), first = tree_.nodes()[node].first_child;
    for (uint32_t i = shown; i-- > 0;) {
      const Branch branch = shown == 1 ? Branch::kNone : i + 1 == shown ? Branch::kLast : Branch::kMore;
      open.push_back({.prefix = prefix, .node = first + i, .branch = branch});
    }
  }

  // A node, its only child that is shown, and so on.
  std::vector<Link> Chain(uint32_t node) const {
    std::vector<Link> chain;
    for (;;) {
      const CallTree::Node& at = tree_.nodes()[node];
      const uint64_t self = tree_.Self(node, context_.event).weight;
      const bool again = !chain.empty() && at.function != CallTree::kNoFunction &&
                         tree_.nodes()[chain.back().node].function == at.function;
      if (again) {
        chain.back().self += self;
        ++chain.back().levels;
      } else {
        chain.push_back({.node = node, .self = self});
      }
      if (ShownChildren(node) != 1) return chain;
      node = at.first_child;
    }
  }

  void PrintChain(const Entry& entry, const std::string& after, const std::vector<Link>& chain) {
    constexpr size_t kFirst = 16, kLast = 8;
    size_t skipped = 0;
    for (size_t i = 0; i < chain.size(); ++i) {
      shown_ += chain[i].levels;
      // The first and last calls of a long chain stay, and those in the middle that took time by themselves. Leaving
      // out a single call would save no line.
      if (chain.size() > kFirst + kLast + 1 && i >= kFirst && i + kLast < chain.size() && !IsShown(chain[i].self)) {
        ++skipped;
        continue;
      }
      PrintSkipped(after, skipped);
      skipped = 0;
      const std::string_view branch = i != 0                          ? ""
                                      : entry.branch == Branch::kMore ? "|-"
                                      : entry.branch == Branch::kLast ? "`-"
                                                                      : "";
      PrintLink(i == 0 ? entry.prefix + std::string(branch) : after, chain[i]);
    }
  }

  void PrintSkipped(const std::string& before, size_t skipped) {
    if (skipped == 0) return;
    const std::string blanks(context_.options.bottom_up ? 11 : 20, ' ');
    text_ += absl::StrFormat("%s%s... %s calls, each by the one before it ...\n", blanks, before, CountText(skipped));
    ++lines_;
  }

  void PrintLink(const std::string& before, const Link& link) {
    std::string line = absl::StrFormat("  %7s  ", PercentText(Weight(link.node), context_.total.weight));
    if (!context_.options.bottom_up) line += absl::StrFormat("%7s  ", PercentText(link.self, context_.total.weight));
    line += before;
    constexpr size_t kLeast = 24;
    const size_t room = std::max(context_.options.width, line.size() + kLeast) - line.size();
    text_ += line + Name(link, room) + '\n';
    ++lines_;
  }

  std::string Name(const Link& link, size_t room) const {
    const CallTree::Node& node = tree_.nodes()[link.node];
    if (node.function == CallTree::kNoFunction) {
      return CutMiddle("thread " + OneLine(ThreadText(context_.profile, node.thread)), room);
    }
    const ReportFunction& function = tree_.functions()[node.function];
    std::string after = function.kernel ? " [k]" : "";
    if (node.inlined) after += " (inlined)";
    if (link.levels > 1) after += absl::StrFormat(" (calls itself, %s levels)", CountText(link.levels));
    constexpr size_t kLeast = 8;
    const size_t left = std::max(room, after.size() + kLeast) - after.size();
    return CutMiddle(OneLine(FunctionName(context_.profile, function)), left) + after;
  }

  const ReportContext& context_;
  const CallTree& tree_;
  double min_percent_ = 0;
  std::string text_;
  size_t lines_ = 0;
  uint64_t shown_ = 0;  // nodes, in however few lines
};

}  // namespace

std::string CallTreeSection(const ReportContext& context) {
  const ReportOptions& options = context.options;
  // Deeper than any report is read; bounds the bottom-up tree of deep recursions.
  constexpr uint32_t kBottomUpDepth = 128;
  const CallTree tree(context.profile, {.bottom_up = options.bottom_up,
                                        .by_thread = options.by_thread,
                                        .event = context.event,
                                        .max_depth = options.bottom_up ? kBottomUpDepth : 0});
  const std::string name = OneLine(context.profile.events[context.event].name);
  const std::string title =
      options.bottom_up
          ? absl::StrFormat("#\n# call tree of %s, from the sampled functions to their callers\n#\n# total %%  ", name)
          : absl::StrFormat("#\n# call tree of %s, callers first\n#\n# total %%   self %%  ", name);
  return title + "function\n" + TreePrinter(context, tree).Print();
}

}  // namespace perfkit::profile
