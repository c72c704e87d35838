// What samples add up to: by event, thread and place in code; named only at the end.
#pragma once

#include <perfkit/sampler.h>
#include <perfkit/symbolizer.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace record {

struct Weight {
  uint64_t samples = 0;
  uint64_t events = 0;  // what the samples stand for: events, or nanoseconds

  void Add(const Weight& other) { samples += other.samples, events += other.events; }
};

// A line of the report.
struct Line {
  std::string_view function;  // "(no name)": all code of the module that has none
  std::string_view module;
  bool kernel = false;
  Weight self;
};

class Profile {
 public:
  Profile(size_t events, const perfkit::SampleRate& rate, bool demangle);

  // Takes every record of a sampler.
  void Take(const perfkit::SamplerRecord& record, const perfkit::SampleLayout& layout);

  // The hottest functions of one event, all threads together or one of them (0: all).
  std::vector<Line> Hottest(size_t event, uint32_t tid);
  Weight Total(size_t event, uint32_t tid) const;
  // The threads that have samples of an event, the hottest first.
  std::vector<uint32_t> Threads(size_t event) const;
  std::string ThreadName(uint32_t tid) const;

  uint64_t samples() const { return samples_; }
  uint64_t chains() const { return chains_; }
  uint64_t stack_bytes() const { return stack_bytes_; }
  uint64_t branches() const { return branches_; }
  std::vector<perfkit::SymbolizedModule> modules() const { return symbolizer_.Modules(); }

 private:
  using ByLocation = std::map<perfkit::CodeLocation, Weight>;
  void TakeSample(const perfkit::Sample& sample, uint32_t event);

  uint64_t fixed_period_;  // 0: each sample says its own
  perfkit::Symbolizer symbolizer_;
  std::vector<std::unordered_map<uint32_t, ByLocation>> self_;  // by event, then thread
  std::unordered_map<uint32_t, std::string> names_;          // of threads
  std::unordered_set<uint32_t> asked_;                       // processes whose maps were read
  uint64_t samples_ = 0, chains_ = 0, stack_bytes_ = 0, branches_ = 0;
};

}  // namespace record
