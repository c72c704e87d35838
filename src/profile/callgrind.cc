// Callgrind's format (valgrind's manual, "Callgrind Format Specification"), for callgrind_annotate and kcachegrind.
//
//   fl=(2) /src/work.cc        functions and files have numbers; a name follows where its number is new
//   fn=(2) Work
//   20 30000000 0              line, then the self weight of each event
//   cfi=(3) /src/hot.h
//   cfn=(3) Hot
//   calls=60 7                 number of samples, the callee's line
//   20 60000000 3              line of the call, then the weight of all that happened in it
//
// A stack with recursion has a function several times. Its weight counts in the call of the outermost one alone, so
// that the calls of a function add up to its total, which is what callgrind_annotate shows. For that, everything needs
// a caller: stacks begin in a function "[all]", whose self are the samples without a stack.
//
// Weights are summed by function and line and by call before anything is written: memory is bounded by these, and by
// the stack table.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/profile_writer.h"
#include "src/base/text.h"
#include "src/profile/frame_tree.h"
#include "src/profile/function_index.h"
#include "src/profile/sink_buffer.h"
#include "src/profile/text_table.h"

namespace perfkit {
namespace {

using profile::Add;
using profile::FrameTree;
using profile::FunctionIndex;
using profile::kNone;
using profile::OneLine;
using profile::Sums;

// A call: the caller's function and line, and the callee. The caller kNone is "[all]". As kNone is the largest number,
// "[all]" comes last in both maps.
struct CallKey {
  uint32_t caller = kNone, line = 0, callee = 0;
  auto operator<=>(const CallKey&) const = default;
};
struct LineKey {
  uint32_t function = kNone, line = 0;
  auto operator<=>(const LineKey&) const = default;
};

// What is written, sorted by function.
struct Costs {
  std::map<LineKey, Sums> lines;
  std::map<CallKey, Sums> calls;
};

// Adds up the costs of a profile: self weights by line, and for each call what its callee and all below it took.
class Collector {
 public:
  explicit Collector(const Profile& profile)
      : profile_(profile), tree_(profile), index_(profile), functions_(FunctionsOf(tree_, index_)) {}

  const std::vector<ReportFunction>& functions() const { return index_.functions(); }

  Costs Collect() {
    const size_t events = profile_.events.size();
    for (const ProfileSample& sample : profile_.samples) {
      if (sample.stack != ProfileStack::kRoot) continue;
      Sums& sums = costs_.lines[{}];
      sums.resize(events);
      Add(sums[sample.event], {sample.weight, sample.samples});
    }
    Sums sums = tree_.SelfSums();
    for (uint32_t frame = 0; frame < functions_.size(); ++frame) {
      AddFrom(sums, frame, [&]() -> Sums& { return costs_.lines[{functions_[frame], LineOf(frame)}]; });
    }
    tree_.AddToParents(sums);
    // From here on `sums` are those of subtrees. A frame is the outermost of its function if the path holds no other
    // one.
    std::vector<uint32_t> open(functions().size());  // frames of the path that are of this function
    tree_.Walk([&](uint32_t frame) { AddCall(sums, frame, open[functions_[frame]]++ == 0); },
               [&](uint32_t frame) { --open[functions_[frame]]; });
    return std::move(costs_);
  }

 private:
  // The line of a frame; 0 if it is in another file than its function is, for a function has one file here.
  uint32_t LineOf(uint32_t frame) const {
    const uint32_t call = tree_.frames()[frame].call;
    if (call == kNone || profile_.calls[call].file != functions()[functions_[frame]].file) return 0;
    return profile_.calls[call].line;
  }

  // Adds a frame's sums to what `target` returns, if there are any.
  template <class Target>
  void AddFrom(const Sums& sums, uint32_t frame, Target&& target) {
    const size_t events = profile_.events.size();
    const auto first = sums.begin() + static_cast<ptrdiff_t>(frame * events);
    if (std::all_of(first, first + static_cast<ptrdiff_t>(events),
                    [](const Profile::Sum& sum) { return sum == Profile::Sum{}; })) {
      return;
    }
    Sums& to = target();
    to.resize(events);
    for (size_t event = 0; event < events; ++event) Add(to[event], first[static_cast<ptrdiff_t>(event)]);
  }

  // A call by a function that is already open is entered with weight 0: readers see that it calls, and count nothing
  // twice.
  void AddCall(const Sums& sums, uint32_t frame, bool is_outermost) {
    const uint32_t parent = tree_.frames()[frame].parent;
    CallKey key{.callee = functions_[frame]};
    if (parent != kNone) key.caller = functions_[parent], key.line = LineOf(parent);
    Sums nothing;
    AddFrom(sums, frame, [&]() -> Sums& {
      Sums& to = costs_.calls[key];
      to.resize(profile_.events.size());
      return is_outermost ? to : nothing;
    });
  }

  const Profile& profile_;
  FrameTree tree_;
  FunctionIndex index_;
  std::vector<uint32_t> functions_;  // by frame
  Costs costs_;
};

// A name that readers take as one: a line, not empty.
std::string Clean(std::string_view name) {
  const std::string line = OneLine(name);
  return base::Trim(line).empty() ? "???" : line;
}

// An event's name without what means something to readers: blanks end it, ':' and ',' separate options.
std::string EventName(const ProfileEvent& event) {
  std::string name = OneLine(event.name);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == ':' || c == ',' || c == '='; }, '_');
  return name.empty() ? "event" : name;
}

// Numbers for names: the name itself stands where its number is new.
class Names {
 public:
  std::string operator()(const std::string& name) {
    const auto [entry, is_new] = numbers_.try_emplace(name, numbers_.size() + 1);
    return is_new ? absl::StrFormat("(%d) %s", entry->second, name) : absl::StrFormat("(%d)", entry->second);
  }

 private:
  std::map<std::string, size_t> numbers_;
};

class Writer {
 public:
  Writer(const Profile& profile, const std::vector<ReportFunction>& functions, ProfileSink sink)
      : profile_(profile), functions_(functions), out_(sink) {}

  absl::Status Write(const Costs& costs) {
    WriteHeader();
    // "[all]" has the largest number, so that it comes last in both.
    auto line = costs.lines.begin();
    auto call = costs.calls.begin();
    while ((line != costs.lines.end() || call != costs.calls.end()) && !out_.failed()) {
      uint32_t function = kNone;
      if (line != costs.lines.end()) function = line->first.function;
      if (call != costs.calls.end()) function = std::min(function, call->first.caller);
      out_.Add(absl::StrFormat("\n%s", Function("", "fl", function)));
      for (; line != costs.lines.end() && line->first.function == function; ++line) {
        out_.Add(absl::StrFormat("%d%s\n", line->first.line, Weights(line->second)));
      }
      for (; call != costs.calls.end() && call->first.caller == function; ++call) WriteCall(call->first, call->second);
    }
    return out_.Finish();
  }

 private:
  void WriteHeader() {
    out_.Add("# callgrind format\nversion: 1\ncreator: perfkit\n");
    out_.Add(absl::StrFormat("cmd: %s\n", Clean(profile_.program)));
    for (const ProfileEvent& event : profile_.events) {
      if (event.accounting.lost == 0) continue;
      out_.Add(absl::StrFormat("desc: %s: %d samples lost\n", OneLine(event.name), event.accounting.lost));
    }
    for (const std::string& note : profile_.accounting.notes) out_.Add(absl::StrFormat("desc: %s\n", OneLine(note)));
    std::string names, totals;
    std::map<std::string, int> seen;
    for (size_t i = 0; i < profile_.events.size(); ++i) {
      std::string name = EventName(profile_.events[i]);
      if (const int times = ++seen[name]; times > 1) name += absl::StrFormat("_%d", times);
      out_.Add(absl::StrFormat("event: %s : %s (%s)\n", name, OneLine(profile_.events[i].name),
                               ProfileUnitName(profile_.events[i].unit)));
      names += " " + name;
      totals += absl::StrFormat(" %d", profile_.Total(i).weight);
    }
    out_.Add(absl::StrFormat("positions: line\nevents:%s\nsummary:%s\n", names, totals));
  }

  // The three lines that name a function: `what` is the key of its file, "fl" or "cfi".
  std::string Function(std::string_view called, std::string_view what, uint32_t index) {
    if (index == kNone) {
      return absl::StrFormat("%sob=%s\n%s=%s\n%sfn=%s\n", called, objects_("???"), what, files_("???"), called,
                             names_("[all]"));
    }
    const ReportFunction& function = functions_[index];
    const bool has_module = function.module != ProfileLocation::kNoModule;
    const std::string object = has_module ? Clean(profile_.strings[profile_.modules[function.module].path]) : "???";
    return absl::StrFormat("%sob=%s\n%s=%s\n%sfn=%s\n", called, objects_(object), what,
                           files_(Clean(profile_.strings[function.file])), called,
                           names_(Clean(FunctionName(profile_, function))));
  }

  void WriteCall(const CallKey& key, const Sums& sums) {
    uint64_t samples = 0;
    for (const Profile::Sum& sum : sums) samples += sum.samples;
    out_.Add(Function("c", "cfi", key.callee));
    out_.Add(absl::StrFormat("calls=%d %d\n%d%s\n", std::max<uint64_t>(samples, 1), functions_[key.callee].line,
                             key.line, Weights(sums)));
  }

  static std::string Weights(const Sums& sums) {
    std::string text;
    for (const Profile::Sum& sum : sums) text += absl::StrFormat(" %d", sum.weight);
    return text;
  }

  const Profile& profile_;
  const std::vector<ReportFunction>& functions_;
  profile::SinkBuffer out_;
  Names objects_, files_, names_;
};

}  // namespace

absl::Status WriteCallgrind(const Profile& profile, const WriteOptions&, ProfileSink sink) {
  Collector collector(profile);
  const Costs costs = collector.Collect();
  return Writer(profile, collector.functions(), sink).Write(costs);
}

}  // namespace perfkit
