// Adds samples up.
#include "profile.h"

#include <algorithm>
#include <fstream>
#include <tuple>
#include <variant>

namespace record {

Profile::Profile(size_t events, const perfkit::SampleRate& rate, bool demangle)
    : fixed_period_(std::holds_alternative<perfkit::Period>(rate) ? std::get<perfkit::Period>(rate).events : 0),
      symbolizer_(perfkit::SymbolizerOptions{.demangle = demangle}),
      self_(events) {}

void Profile::Take(const perfkit::SamplerRecord& record, const perfkit::SampleLayout& layout) {
  symbolizer_.Add(record, layout);
  perfkit::Dispatch(
      record, layout,
      perfkit::Overloaded{[&](const perfkit::Sample& sample) { TakeSample(sample, record.event); },
                          [&](const perfkit::CommRecord& comm) { names_[comm.tid] = std::string(comm.name); }});
}

// Where it is, now: by the time that the report is made, something else may be mapped there.
void Profile::TakeSample(const perfkit::Sample& sample, uint32_t event) {
  if (event >= self_.size()) return;
  ++samples_;
  chains_ += !sample.chain().words().empty();
  stack_bytes_ += sample.user_stack().bytes.size();
  branches_ += sample.branches().size();
  const perfkit::TaskId task = *sample.task();
  perfkit::CodeLocation location = symbolizer_.Locate(task.pid, *sample.ip(), sample.cpu_mode());
  // A process that existed before whole CPUs were sampled: no record has said what it has mapped.
  const bool unknown = !location.known() && sample.cpu_mode() == perfkit::CpuMode::kUser;
  if (unknown && asked_.insert(task.pid).second && symbolizer_.AddProcess(static_cast<pid_t>(task.pid)).ok()) {
    location = symbolizer_.Locate(task.pid, *sample.ip());
  }
  self_[event][task.tid][location].Add({1, fixed_period_ != 0 ? fixed_period_ : sample.period().value_or(1)});
}

std::vector<Line> Profile::Hottest(size_t event, uint32_t tid) {
  std::map<std::tuple<std::string_view, std::string_view, bool>, Weight> functions;
  for (const auto& [thread, locations] : self_[event]) {
    if (tid != 0 && tid != thread) continue;
    for (const auto& [location, weight] : locations) {
      const perfkit::Symbol symbol = symbolizer_.Name(location);
      const std::string_view function = symbol.named() ? symbol.function : "(no name)";
      functions[{function, symbol.module, symbol.kernel}].Add(weight);
    }
  }
  std::vector<Line> lines;
  for (const auto& [name, weight] : functions) {
    const auto& [function, module, kernel] = name;
    lines.push_back({function, module, kernel, weight});
  }
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return a.self.events != b.self.events ? a.self.events > b.self.events : a.function < b.function;
  });
  return lines;
}

Weight Profile::Total(size_t event, uint32_t tid) const {
  Weight total;
  for (const auto& [thread, locations] : self_[event]) {
    if (tid != 0 && tid != thread) continue;
    for (const auto& [location, weight] : locations) total.Add(weight);
  }
  return total;
}

std::vector<uint32_t> Profile::Threads(size_t event) const {
  std::vector<uint32_t> threads;
  for (const auto& [thread, locations] : self_[event]) threads.push_back(thread);
  std::sort(threads.begin(), threads.end(),
            [&](uint32_t a, uint32_t b) { return Total(event, a).events > Total(event, b).events; });
  return threads;
}

std::string Profile::ThreadName(uint32_t tid) const {
  const auto found = names_.find(tid);
  if (found != names_.end()) return found->second;
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(tid) + "/comm"), name);
  return name.empty() ? "?" : name;
}

}  // namespace record
