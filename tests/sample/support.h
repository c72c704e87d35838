// Shared by the tests of the sampler: samplers of page faults, and tallies of drains.
#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "perfkit/sampler.h"
#include "tests/support/work.h"

namespace perfkit::testing {

inline SamplerOptions FaultOptions(size_t ring_bytes = 512 << 10) {
  SamplerOptions options;
  options.events = {{.event = "page-faults:u", .rate = Period{1}}};
  options.fields = kSampleAddr;
  options.ring_bytes = ring_bytes;
  return options;
}

// All samples of a drain, by event.
inline std::map<uint32_t, uint64_t> CountSamples(Sampler& sampler) {
  std::map<uint32_t, uint64_t> counts;
  sampler.Drain([&](const SamplerRecord& record) {
    if (record.type == static_cast<uint32_t>(RecordType::kSample)) ++counts[record.event];
  });
  return counts;
}

// Drains until there are no more records.
inline uint64_t DrainAll(Sampler& sampler) {
  uint64_t given = 0;
  while (const size_t now = sampler.Drain([](const SamplerRecord&) {})) given += now;
  return given;
}

// Drains, calling `visit` with each sample.
template <class Visit>
void ForEachSample(Sampler& sampler, Visit&& visit) {
  sampler.Drain([&](const SamplerRecord& record) {
    if (record.type != static_cast<uint32_t>(RecordType::kSample)) return;
    const std::optional<Sample> sample = Sample::Parse(record, sampler.layout());
    REQUIRE(sample.has_value());
    visit(*sample, record);
  });
}

// Checks that each sample is in the accounting: for events of period 1, stopped and drained.
inline void CheckAccountingBalances(const SamplerStats& stats) {
  for (const EventAccounting& event : stats.events) {
    INFO("counted " << event.counted << ", delivered " << event.delivered << ", duplicates " << event.duplicates
                    << ", lost " << event.lost << ", paused " << event.paused);
    CHECK(event.accounted() == event.counted);
  }
}

}  // namespace perfkit::testing
