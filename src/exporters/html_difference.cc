// A difference of two profiles as columns of JSON. Values are what they were in the profiles: weights and samples,
// which are integers; the page makes shares of them, or weights per iteration. Of nodes only the selfs are written,
// which the page adds up. Bounds of intervals are integers, too, in steps of a part of the whole that no screen shows.
#include "src/exporters/html_difference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace perfkit::exporters {
namespace {

// A step of the bounds of intervals, as a part of the whole.
constexpr double kStep = 1e-7;

// How values of changes become integers.
struct Scale {
  double before = 0, after = 0;  // Weight of a value of 1.
  double step = 1;               // Value of a step.

  explicit Scale(const ProfileDifference& difference)
      : before(PerValue(difference.before, difference.before_whole)),
        after(PerValue(difference.after, difference.after_whole)),
        step(kStep * std::max(difference.before_whole, difference.after_whole)) {
    if (!(step > 0)) step = 1;
  }

  static double PerValue(const Profile::Sum& sum, double whole) {
    return whole > 0 ? static_cast<double>(sum.weight) / whole : 0;
  }

  static uint64_t Weight(double value, double scale) {
    return static_cast<uint64_t>(std::llround(std::max(value * scale, 0.0)));
  }

  // Rounds, but never to 0: the signs of an interval's bounds are the verdict.
  int64_t Steps(double value) const {
    const int64_t steps = std::llround(value / step);
    return steps != 0 || value == 0 ? steps : value > 0 ? 1 : -1;
  }
};

// A member with the columns of a change. `change`: returns it, of an entry of the table.
template <class Table, class ChangeOf>
void WriteValues(JsonWriter& json, std::string_view name, const Table& table, const Scale& scale, ChangeOf change) {
  json.Key(name).BeginObject();
  Column(json, "before", table, [&](const auto& of) { return Scale::Weight(change(of).before, scale.before); });
  Column(json, "after", table, [&](const auto& of) { return Scale::Weight(change(of).after, scale.after); });
  Column(json, "before_samples", table, [&](const auto& of) { return change(of).before_samples; });
  Column(json, "after_samples", table, [&](const auto& of) { return change(of).after_samples; });
  json.EndObject();
}

template <class Table, class ChangeOf>
void WriteBounds(JsonWriter& json, std::string_view name, const Table& table, const Scale& scale, ChangeOf change) {
  json.Key(name).BeginObject();
  Column(json, "low", table, [&](const auto& of) { return scale.Steps(change(of).low); });
  Column(json, "high", table, [&](const auto& of) { return scale.Steps(change(of).high); });
  json.EndObject();
}

// A name each; then for each function the index of its module's name, or -1.
void WriteFunctions(const ProfileDifference& difference, const Scale& scale, JsonWriter& json) {
  const auto& functions = difference.functions;
  std::vector<std::string_view> modules;
  for (const ProfileDifference::Function& function : functions) modules.push_back(function.module);
  std::sort(modules.begin(), modules.end());
  modules.erase(std::unique(modules.begin(), modules.end()), modules.end());
  const auto module_of = [&](const ProfileDifference::Function& function) {
    const auto at = std::lower_bound(modules.begin(), modules.end(), std::string_view(function.module));
    return function.module.empty() ? int64_t{-1} : at - modules.begin();
  };
  json.Key("modules").BeginArray();
  for (const std::string_view module : modules) json.String(module);
  json.EndArray().Key("functions").BeginObject().Key("name").BeginArray();
  for (const ProfileDifference::Function& function : functions) json.String(function.name);
  json.EndArray();
  using Function = ProfileDifference::Function;
  Column(json, "module", functions, module_of);
  Column(json, "kernel", functions, [](const Function& function) { return function.kernel ? 1 : 0; });
  const auto self = [](const Function& function) -> const ProfileChange& { return function.self; };
  const auto total = [](const Function& function) -> const ProfileChange& { return function.total; };
  WriteValues(json, "self", functions, scale, self);
  WriteBounds(json, "self_change", functions, scale, self);
  WriteValues(json, "total", functions, scale, total);
  WriteBounds(json, "total_change", functions, scale, total);
  json.EndObject();
}

void WriteNodes(const ProfileDifference& difference, const Scale& scale, JsonWriter& json) {
  using Node = ProfileDifference::Node;
  const auto& nodes = difference.nodes;
  uint32_t index = 0;
  json.Key("nodes").BeginObject();
  Column(json, "up", nodes, [&](const Node& node) { return index++ - node.parent; });
  Column(json, "function", nodes,
         [](const Node& node) { return node.function == UINT32_MAX ? int64_t{-1} : int64_t{node.function}; });
  WriteValues(json, "self", nodes, scale, [](const Node& node) -> const ProfileChange& { return node.self; });
  WriteBounds(json, "total_change", nodes, scale, [](const Node& node) -> const ProfileChange& { return node.total; });
  json.EndObject();
}

void WriteSide(JsonWriter& json, std::string_view name, const Profile::Sum& sum, double whole,
               const std::string& accounting) {
  json.Key(name).BeginObject().Member("weight", sum.weight).Member("samples", sum.samples).Member("whole", whole);
  json.Member("accounting", accounting).EndObject();
}

}  // namespace

void WriteHtmlDifference(const ProfileDifference& difference, JsonWriter& json) {
  const Scale scale(difference);
  json.BeginObject().Key("difference").BeginObject();
  json.Member("program", difference.program).Member("event", difference.event);
  json.Member("unit", ProfileUnitName(difference.unit)).Member("per_iteration", difference.per_iteration);
  json.Member("confidence", difference.confidence).Member("step", scale.step);
  WriteSide(json, "before", difference.before, difference.before_whole, difference.before_accounting);
  WriteSide(json, "after", difference.after, difference.after_whole, difference.after_accounting);
  WriteFunctions(difference, scale, json);
  WriteNodes(difference, scale, json);
  json.EndObject().EndObject();
}

}  // namespace perfkit::exporters
