// Compares a parsed sample with the values that it was built from.
#pragma once

#include <catch2/catch.hpp>

#include "perfkit/sample.h"
#include "tests/support/record_builder.h"

namespace perfkit::testing {

// Returns all fields of a sample as text: equal texts mean equal samples. "-" stands for a missing field.
inline void Append(std::string& out, const char* name, std::optional<uint64_t> value) {
  out += name;
  out += value ? '=' + std::to_string(*value) + ' ' : std::string("- ");
}

inline void AppendWords(std::string& out, const char* name, Words words) {
  out += name;
  for (const uint64_t word : words) out += ',' + std::to_string(word);
  out += ' ';
}

// Of a Sample or a FixedSample.
template <class AnySample>
std::string Describe(const AnySample& sample) {
  std::string out;
  Append(out, "identifier", sample.identifier());
  Append(out, "ip", sample.ip());
  Append(out, "pid", sample.task() ? std::optional<uint64_t>(sample.task()->pid) : std::nullopt);
  Append(out, "tid", sample.task() ? std::optional<uint64_t>(sample.task()->tid) : std::nullopt);
  Append(out, "time", sample.time_ns());
  Append(out, "addr", sample.address());
  Append(out, "id", sample.id());
  Append(out, "stream", sample.stream_id());
  Append(out, "cpu", sample.cpu());
  Append(out, "period", sample.period());
  const std::optional<ReadValues> read = sample.read();
  Append(out, "read", read ? std::optional<uint64_t>(read->size()) : std::nullopt);
  if (read) {
    Append(out, "enabled", read->time_enabled_ns());
    Append(out, "running", read->time_running_ns());
    for (size_t i = 0; i < read->size(); ++i) {
      Append(out, "value", (*read)[i].value);
      Append(out, "id", (*read)[i].id);
      Append(out, "lost", (*read)[i].lost);
    }
  }
  AppendWords(out, "chain", sample.chain().words());
  out += "raw " + Text(sample.raw()) + ' ';
  const BranchStack branches = sample.branches();
  Append(out, "hw_index", branches.hw_index);
  for (size_t i = 0; i < branches.size(); ++i) {
    Append(out, "from", branches[i].from);
    Append(out, "to", branches[i].to);
    Append(out, "flags", branches[i].flags);
  }
  AppendWords(out, "counters", branches.counters);
  AppendWords(out, "user", sample.user_registers().values);
  Append(out, "user_abi", sample.user_registers().abi);
  out += "stack " + Text(sample.user_stack().bytes) + ' ';
  Append(out, "reserved", sample.user_stack().reserved);
  Append(out, "weight", sample.weight());
  Append(out, "data_src", sample.data_source());
  Append(out, "transaction", sample.transaction());
  AppendWords(out, "intr", sample.interrupt_registers().values);
  Append(out, "phys", sample.physical_address());
  Append(out, "cgroup", sample.cgroup());
  Append(out, "data_page", sample.data_page_bytes());
  Append(out, "code_page", sample.code_page_bytes());
  out += "aux " + Text(sample.aux()) + ' ';
  Append(out, "rest", sample.rest().size());
  return out;
}

inline void AppendList(std::string& out, const char* name, bool there, const std::vector<uint64_t>& list) {
  out += name;
  for (size_t i = 0; there && i < list.size(); ++i) out += ',' + std::to_string(list[i]);
  out += ' ';
}

inline void AppendExpectedRead(std::string& out, uint64_t format, bool there, const SampleValues& values) {
  const size_t count = (format & kReadGroup) != 0 ? values.read_values.size() : 1;
  const auto put = [&](const char* name, bool has, uint64_t value) {
    Append(out, name, has ? std::optional(value) : std::nullopt);
  };
  put("read", there, count);
  if (!there) return;
  put("enabled", (format & kReadTimeEnabled) != 0, values.time_enabled);
  put("running", (format & kReadTimeRunning) != 0, values.time_running);
  for (size_t i = 0; i < count; ++i) {
    put("value", true, values.read_values[i]);
    put("id", (format & kReadId) != 0, 100 + i);
    put("lost", (format & kReadLost) != 0, 200 + i);
  }
}

inline void AppendExpectedBranches(std::string& out, const AttrBits& bits, const SampleValues& values) {
  const bool there = (bits.sample_type & kSampleBranchStack) != 0;
  const bool has_index = there && (bits.branch_sample_type & kBranchHwIndex) != 0;
  Append(out, "hw_index", has_index ? std::optional(values.hw_index) : std::nullopt);
  std::vector<uint64_t> counters;
  for (size_t i = 0; there && i < values.branches.size(); ++i) {
    Append(out, "from", values.branches[i].from);
    Append(out, "to", values.branches[i].to);
    Append(out, "flags", values.branches[i].flags);
    counters.push_back(300 + i);
  }
  AppendList(out, "counters", (bits.branch_sample_type & kBranchCounters) != 0, counters);
}

// The registers of a mask, as AddRegisters writes them.
inline std::vector<uint64_t> RegistersOf(uint64_t mask, uint64_t base) {
  std::vector<uint64_t> list;
  for (uint64_t i = 0; i < 64; ++i) {
    if ((mask >> i & 1) != 0) list.push_back(base + i);
  }
  return list;
}

// What Describe says of a sample that was built from `values`.
inline std::string Expected(const AttrBits& bits, const SampleValues& values) {
  std::string out;
  const auto has = [&](uint64_t bit) { return (bits.sample_type & bit) != 0; };
  const auto put = [&](const char* name, bool there, uint64_t value) {
    Append(out, name, there ? std::optional(value) : std::nullopt);
  };
  put("identifier", has(kSampleIdentifier), values.identifier);
  put("ip", has(kSampleIp), values.ip);
  put("pid", has(kSampleTid), values.pid);
  put("tid", has(kSampleTid), values.tid);
  put("time", has(kSampleTime), values.time);
  put("addr", has(kSampleAddr), values.addr);
  put("id", has(kSampleId), values.id);
  put("stream", has(kSampleStreamId), values.stream_id);
  put("cpu", has(kSampleCpu), values.cpu);
  put("period", has(kSamplePeriod), values.period);
  AppendExpectedRead(out, bits.read_format, has(kSampleRead), values);
  AppendList(out, "chain", has(kSampleCallchain), values.chain);
  out += "raw " + (has(kSampleRaw) ? values.raw : "") + ' ';
  AppendExpectedBranches(out, bits, values);
  const bool user = has(kSampleRegsUser) && values.user_abi != 0;
  AppendList(out, "user", user, RegistersOf(bits.regs_user, 1000));
  put("user_abi", true, user ? values.user_abi : 0);
  const bool stack = has(kSampleStackUser) && !values.stack.empty();
  out += "stack " + (stack ? values.stack.substr(0, values.stack_copied) : "") + ' ';
  put("reserved", true, stack ? values.stack.size() : 0);
  put("weight", has(kSampleWeight | kSampleWeightStruct), values.weight);
  put("data_src", has(kSampleDataSrc), values.data_src);
  put("transaction", has(kSampleTransaction), values.transaction);
  AppendList(out, "intr", has(kSampleRegsIntr) && values.intr_abi != 0, RegistersOf(bits.regs_intr, 2000));
  put("phys", has(kSamplePhysAddr), values.phys_addr);
  put("cgroup", has(kSampleCgroup), values.cgroup);
  put("data_page", has(kSampleDataPageSize), values.data_page);
  put("code_page", has(kSampleCodePageSize), values.code_page);
  out += "aux " + (has(kSampleAux) ? values.aux : "") + ' ';
  put("rest", true, 0);
  return out;
}

}  // namespace perfkit::testing
