// Holds a parsed sample to the values that it was built from.
#pragma once

#include <catch2/catch.hpp>

#include "perfkit/sample.h"
#include "tests/support/record_builder.h"

namespace perfkit::testing {

// All that a sample says, as text: equal texts, equal samples. "-" stands for a field that is not there.
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

// Writes what Describe says of a sample that was built from `values`, in the order of its fields.
struct ExpectedWriter {
  const AttrBits& bits;
  const SampleValues& values;
  std::string out;

  bool Has(uint64_t bit) const { return (bits.sample_type & bit) != 0; }

  void Put(const char* name, bool there, uint64_t value) {
    Append(out, name, there ? std::optional(value) : std::nullopt);
  }

  void Words(const char* name, bool there, const std::vector<uint64_t>& list) {
    out += name;
    for (size_t i = 0; there && i < list.size(); ++i) out += ',' + std::to_string(list[i]);
    out += ' ';
  }

  static std::vector<uint64_t> Registers(uint64_t mask, uint64_t base) {
    std::vector<uint64_t> list;
    for (uint64_t i = 0; i < 64; ++i) {
      if ((mask >> i & 1) != 0) list.push_back(base + i);
    }
    return list;
  }

  void Identity() {
    Put("identifier", Has(kSampleIdentifier), values.identifier);
    Put("ip", Has(kSampleIp), values.ip);
    Put("pid", Has(kSampleTid), values.pid);
    Put("tid", Has(kSampleTid), values.tid);
    Put("time", Has(kSampleTime), values.time);
    Put("addr", Has(kSampleAddr), values.addr);
    Put("id", Has(kSampleId), values.id);
    Put("stream", Has(kSampleStreamId), values.stream_id);
    Put("cpu", Has(kSampleCpu), values.cpu);
    Put("period", Has(kSamplePeriod), values.period);
  }

  void Counters() {
    const size_t count = (bits.read_format & kReadGroup) != 0 ? values.read_values.size() : 1;
    Put("read", Has(kSampleRead), count);
    if (!Has(kSampleRead)) return;
    Put("enabled", (bits.read_format & kReadTimeEnabled) != 0, values.time_enabled);
    Put("running", (bits.read_format & kReadTimeRunning) != 0, values.time_running);
    for (size_t i = 0; i < count; ++i) {
      Put("value", true, values.read_values[i]);
      Put("id", (bits.read_format & kReadId) != 0, 100 + i);
      Put("lost", (bits.read_format & kReadLost) != 0, 200 + i);
    }
  }

  void Branches() {
    const bool there = Has(kSampleBranchStack);
    Put("hw_index", there && (bits.branch_sample_type & kBranchHwIndex) != 0, values.hw_index);
    std::vector<uint64_t> counters;
    for (size_t i = 0; there && i < values.branches.size(); ++i) {
      Put("from", true, values.branches[i].from);
      Put("to", true, values.branches[i].to);
      Put("flags", true, values.branches[i].flags);
      counters.push_back(300 + i);
    }
    Words("counters", (bits.branch_sample_type & kBranchCounters) != 0, counters);
  }

  void UserState() {
    const bool user = Has(kSampleRegsUser) && values.user_abi != 0;
    Words("user", user, Registers(bits.regs_user, 1000));
    Put("user_abi", true, user ? values.user_abi : 0);
    const bool stack = Has(kSampleStackUser) && !values.stack.empty();
    out += "stack " + (stack ? values.stack.substr(0, values.stack_copied) : "") + ' ';
    Put("reserved", true, stack ? values.stack.size() : 0);
  }

  void Memory() {
    Put("weight", Has(kSampleWeight | kSampleWeightStruct), values.weight);
    Put("data_src", Has(kSampleDataSrc), values.data_src);
    Put("transaction", Has(kSampleTransaction), values.transaction);
    Words("intr", Has(kSampleRegsIntr) && values.intr_abi != 0, Registers(bits.regs_intr, 2000));
    Put("phys", Has(kSamplePhysAddr), values.phys_addr);
    Put("cgroup", Has(kSampleCgroup), values.cgroup);
    Put("data_page", Has(kSampleDataPageSize), values.data_page);
    Put("code_page", Has(kSampleCodePageSize), values.code_page);
  }
};

// What Describe says of a sample that was built from `values`.
inline std::string Expected(const AttrBits& bits, const SampleValues& values) {
  ExpectedWriter writer{bits, values, ""};
  writer.Identity();
  writer.Counters();
  writer.Words("chain", writer.Has(kSampleCallchain), values.chain);
  writer.out += "raw " + (writer.Has(kSampleRaw) ? values.raw : "") + ' ';
  writer.Branches();
  writer.UserState();
  writer.Memory();
  writer.out += "aux " + (writer.Has(kSampleAux) ? values.aux : "") + ' ';
  writer.Put("rest", true, 0);
  return writer.out;
}

}  // namespace perfkit::testing
