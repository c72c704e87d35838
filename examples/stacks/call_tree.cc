// Stacks are kept as places and named at the end: each distinct one once.
#include "call_tree.h"

#include <absl/strings/str_format.h>

#include <algorithm>

namespace stacks {
namespace {

constexpr size_t kWidest = 60;

std::string FileName(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

// "Sort(Table&)  table.cc:17" or, without debug information, "sqlite3_step  [libsqlite3.so.0.8.6]".
std::string Describe(const perfkit::SourceFrame& frame, const perfkit::Symbol& symbol) {
  std::string name = frame.function.empty() ? absl::StrFormat("0x%x", symbol.offset) : std::string(frame.function);
  if (name.size() > kWidest) name.replace(kWidest, std::string::npos, "...");
  if (frame.file.empty()) return absl::StrFormat("%s  [%s]", name, FileName(symbol.module));
  return absl::StrFormat("%s  %s:%d%s", name, FileName(frame.file), frame.line, frame.inlined ? " (inlined)" : "");
}

double Percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

void CallTree::Print(perfkit::Symbolizer& symbolizer, double min_percent) const {
  Call root;
  for (const auto& [stack, count] : stacks_) {
    Call* call = &root;
    root.samples += count;
    for (auto location = stack.rbegin(); location != stack.rend(); ++location) {
      const perfkit::Symbol symbol = symbolizer.Name(*location);
      const auto frames = symbolizer.Inlined(*location);
      for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
        call = &call->callees[Describe(*frame, symbol)];
        call->samples += count;
      }
    }
    call->self += count;
  }
  absl::PrintF("  total    self\n");
  PrintCallees(root, root.samples, min_percent, 0);
}

void CallTree::PrintCallees(const Call& caller, uint64_t all, double min_percent, int depth) {
  std::vector<const std::pair<const std::string, Call>*> callees;
  for (const auto& callee : caller.callees) callees.push_back(&callee);
  std::sort(callees.begin(), callees.end(),
            [](const auto* a, const auto* b) { return a->second.samples > b->second.samples; });
  for (const auto* callee : callees) {
    const Call& call = callee->second;
    if (Percent(call.samples, all) < min_percent) break;
    absl::PrintF("%5.1f %%  %5.1f %%  %*s%s\n", Percent(call.samples, all), Percent(call.self, all), depth, "",
                 callee->first);
    PrintCallees(call, all, min_percent, depth + 1);
  }
}

}  // namespace stacks
