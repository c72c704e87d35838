// Writes a difference of two profiles as text: a head that says how certain the changes are, a table of functions by
// the size of their change, and the calls whose total changed. A function whose change can't be told from noise comes
// after all others and is marked; a call like that is left out, but not the calls below it, which are shown under the
// nearest caller that is.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/profile_difference.h"
#include "src/profile/report_sections.h"
#include "src/profile/text_table.h"

namespace perfkit {
namespace {

using profile::CountText;
using profile::OneLine;
using profile::TextTable;
using profile::WeightText;

class DifferenceText {
 public:
  DifferenceText(const ProfileDifference& difference, const ReportOptions& options)
      : difference_(difference), options_(options), width_(std::max<size_t>(options.width, 100)) {}

  std::string Text() const {
    std::string text = Header() + Functions();
    if (options_.call_tree) text += Calls();
    return text;
  }

 private:
  std::string Header() const {
    const double wrong = 100 * (1 - difference_.confidence);
    return absl::StrFormat(
        "# difference of %s: before %s, after %s\n"
        "# changes are of %s, with intervals of %.4g %% confidence for independent samples\n"
        "# ~ can't be told from noise; of 100 functions that did not change, about %.2g have no ~\n#\n",
        OneLine(difference_.event), profile::SumText(difference_.before, difference_.unit),
        profile::SumText(difference_.after, difference_.unit),
        difference_.per_iteration ? "weights per iteration" : "shares of the total, in points of percent",
        100 * difference_.confidence, wrong);
  }

  // A value of a change as people read it: percent, or a weight per iteration.
  std::string Number(double value, bool sign) const {
    if (!difference_.per_iteration) {
      return sign ? absl::StrFormat("%+.2f", 100 * value) : absl::StrFormat("%.2f", 100 * value);
    }
    constexpr double kExact = 1000;  // a weight less than this has digits after its point
    const double size = std::abs(value);
    const std::string text =
        size < kExact ? absl::StrFormat("%.2f%s", size, Unit())
                      : WeightText(static_cast<uint64_t>(std::llround(std::min(size, 1e18))), difference_.unit);
    return (value < 0 ? "-" : sign ? "+" : "") + text;
  }

  // Without weights, the shares of a side are not known.
  bool HasValues(const Profile::Sum& side) const { return difference_.per_iteration || side.weight != 0; }
  std::string Before(const ProfileChange& change) const {
    return HasValues(difference_.before) ? Number(change.before, false) : "-";
  }
  std::string After(const ProfileChange& change) const {
    return HasValues(difference_.after) ? Number(change.after, false) : "-";
  }
  std::string Change(double change) const {
    return HasValues(difference_.before) && HasValues(difference_.after) ? Number(change, true) : "-";
  }

  std::string_view Unit() const {
    if (difference_.unit == ProfileUnit::kNanoseconds) return " ns";
    return difference_.unit == ProfileUnit::kBytes ? " B" : "";
  }

  bool IsLarge(const ProfileChange& change) const {
    const double whole = difference_.before_whole != 0 ? difference_.before_whole : difference_.after_whole;
    return change.change() != 0 && 100 * std::abs(change.change()) >= options_.min_percent * whole;
  }

  const ProfileChange& ChangeOf(const ProfileDifference::Function& function) const {
    return options_.children ? function.total : function.self;
  }

  std::string Functions() const {
    std::vector<const ProfileDifference::Function*> order;
    size_t left_out = 0;
    for (const ProfileDifference::Function& function : difference_.functions) {
      if (IsLarge(ChangeOf(function))) {
        order.push_back(&function);
      } else {
        ++left_out;
      }
    }
    std::stable_sort(order.begin(), order.end(), [&](const auto* a, const auto* b) {
      const ProfileChange &of_a = ChangeOf(*a), &of_b = ChangeOf(*b);
      return std::pair(of_a.is_noise(), -std::abs(of_a.change())) <
             std::pair(of_b.is_noise(), -std::abs(of_b.change()));
    });
    TextTable table({{"change", true},
                     {"from", true},
                     {"to", true},
                     {"before", true},
                     {"after", true},
                     {"samples", true},
                     {.title = "module", .max = 24, .shrink = TextTable::Shrink::kShort},
                     {.title = "function", .shrink = TextTable::Shrink::kLong}});
    for (const auto* const function : order) {
      if (options_.max_lines != 0 && table.rows() >= options_.max_lines) {
        ++left_out;
        continue;
      }
      const ProfileChange& change = ChangeOf(*function);
      table.AddRow({(change.is_noise() ? "~ " : "") + Change(change.change()), Change(change.low), Change(change.high),
                    Before(change), After(change),
                    absl::StrFormat("%s, %s", profile::SamplesText(difference_.before, change.before_samples),
                                    profile::SamplesText(difference_.after, change.after_samples)),
                    function->module, (function->kernel ? "[k] " : "[.] ") + function->name});
    }
    return absl::StrFormat("# functions, by the change of their %s\n#\n", options_.children ? "total" : "self") +
           table.Format(width_) + profile::LeftOut(left_out, "functions");
  }

  // Nodes whose total changed, depth first, each indented below the nearest caller that is shown.
  std::string Calls() const {
    struct Open {
      uint32_t node = 0, indent = 0;
      bool is_direct = true;  // its caller is shown, or it has none
    };
    std::string text;
    size_t lines = 0, left_out = 0;
    std::vector<Open> open;
    if (!difference_.nodes.empty()) open.emplace_back();
    while (!open.empty()) {
      Open at = open.back();
      open.pop_back();
      const ProfileDifference::Node& node = difference_.nodes[at.node];
      const bool is_changed = at.node != 0 && node.total.change() != 0 && !node.total.is_noise();
      const bool is_shown = is_changed && IsLarge(node.total);
      const bool fits = options_.max_lines == 0 || lines < options_.max_lines;
      if (is_shown && fits) {
        text += CallLine(node, at.indent, at.is_direct);
        ++lines;
      }
      left_out += is_changed && !(is_shown && fits) ? 1 : 0;
      for (uint32_t i = node.children; i-- > 0;) {
        open.push_back({.node = node.first_child + i,
                        .indent = at.indent + (is_shown ? 1 : 0),
                        .is_direct = is_shown || at.node == 0});
      }
    }
    if (text.empty()) {
      if (left_out == 0) return "#\n# no call's total changed by more than noise\n";
      return "#\n# no call's total changed by more than noise and min_percent\n" +
             profile::LeftOut(left_out, "calls", "", "min_percent");
    }
    return absl::StrFormat(
               "#\n# calls whose total changed, below the nearest caller that did\n#\n# %9s  %9s  %9s  function\n",
               "change", "before", "after") +
           text + profile::LeftOut(left_out, "calls");
  }

  std::string CallLine(const ProfileDifference::Node& node, uint32_t indent, bool is_direct) const {
    std::string line =
        absl::StrFormat("  %9s  %9s  %9s  ", Change(node.total.change()), Before(node.total), After(node.total));
    constexpr uint32_t kMaxIndent = 20;
    line += std::string(std::min(indent, kMaxIndent) * size_t{2}, ' ');
    if (!is_direct) line += "... ";
    const bool known = node.function < difference_.functions.size();
    const std::string name = known ? OneLine(difference_.functions[node.function].name) : "?";
    return line + profile::CutMiddle(name, std::max(width_, line.size() + 24) - line.size()) + '\n';
  }

  const ProfileDifference& difference_;
  const ReportOptions& options_;
  size_t width_;
};

}  // namespace

std::string FormatReport(const ProfileDifference& difference, const ReportOptions& options) {
  return DifferenceText(difference, options).Text();
}

}  // namespace perfkit
