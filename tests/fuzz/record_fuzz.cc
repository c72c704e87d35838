// Fuzzes the parsers of records and samples: the first bytes are an attr, the rest is one record after another, each
// given to Dispatch; all that comes out is read.
#include <cstring>

#include "perfkit/kernel_frames.h"
#include "perfkit/sample.h"
#include "tests/fuzz/fuzz_target.h"

namespace perfkit {
namespace {

uint64_t SumOf(Bytes bytes) {
  uint64_t sum = 0;
  for (const std::byte byte : bytes) sum += static_cast<uint64_t>(byte);
  return sum;
}
uint64_t SumOf(std::string_view text) { return SumOf(std::as_bytes(std::span(text))); }
uint64_t SumOf(const CallChain& chain) {
  uint64_t sum = 0;
  size_t parts = 0, words = 0;
  for (const ChainPart& part : chain) {
    ++parts;
    words += part.pcs.size();
    for (const uint64_t pc : part.pcs) sum += pc;
  }
  PERFKIT_FUZZ_CHECK(parts <= 8 && words <= chain.words().size() && words + parts >= chain.words().size());
  return sum;
}
uint64_t SumOf(const Sample& sample, const KernelFrames& kernel) {
  PERFKIT_FUZZ_CHECK(kernel.size() <= sample.chain().words().size() + 1 && kernel.empty() == (kernel.size() == 0));
  uint64_t sum = 0;
  for (size_t i = 0; i < kernel.size(); ++i) sum += kernel[i].code();
  return sum;
}
uint64_t SumOf(const ReadValues& values) {
  uint64_t sum = values.time_enabled_ns().value_or(0) + values.time_running_ns().value_or(0);
  for (size_t i = 0; i < values.size(); ++i) {
    sum += values[i].value + values[i].id.value_or(0) + values[i].lost.value_or(0);
  }
  return sum;
}

uint64_t SumOf(const Sample& sample) {
  uint64_t sum = sample.ip().value_or(0) + sample.time_ns().value_or(0) + sample.weight().value_or(0) +
                 sample.code_page_bytes().value_or(0) + sample.cpu().value_or(0);
  if (sample.read()) sum += SumOf(*sample.read());
  sum += SumOf(sample.chain()) + SumOf(sample.raw()) + SumOf(sample.aux()) + SumOf(sample.rest());
  sum += SumOf(sample.user_stack().bytes) + SumOf(sample, KernelFrames(sample));
  for (unsigned i = 0; i < 66; ++i) {
    sum += sample.user_registers()[i].value_or(0) + sample.interrupt_registers()[i].value_or(0);
  }
  const BranchStack branches = sample.branches();
  for (size_t i = 0; i < branches.size(); ++i) sum += branches[i].from + branches[i].cycles();
  for (const uint64_t counter : branches.counters) sum += counter;
  return sum;
}

}  // namespace

PERFKIT_FUZZ_TARGET(FuzzRecord) {
  AttrBits bits;
  if (size < 40) return 0;
  std::memcpy(&bits.sample_type, data, 4);
  std::memcpy(&bits.read_format, data + 4, 1);
  std::memcpy(&bits.branch_sample_type, data + 5, 3);
  std::memcpy(&bits.regs_user, data + 8, 8);
  std::memcpy(&bits.regs_intr, data + 16, 8);
  bits.sample_id_all = (data[24] & 1) != 0;
  const SampleLayout layout(bits);
  LinearReader reader(std::as_bytes(std::span(data + 32, size - 32)));
  RawRecord record;
  volatile uint64_t sink = 0;
  while (reader.Next(record)) {
    layout.TimeOf(record);
    layout.IdOf(record);
    Dispatch(record, layout,
             Overloaded{[&](const Sample& sample) { sink = SumOf(sample); },
                        [&](const MmapRecord& map) { sink = SumOf(map.name) + SumOf(map.build_id); },
                        [&](const CommRecord& comm) { sink = SumOf(comm.name); },
                        [&](const KsymbolRecord& symbol) { sink = SumOf(symbol.name); },
                        [&](const CgroupRecord& cgroup) { sink = SumOf(cgroup.path); },
                        [&](const BpfEventRecord& bpf) { sink = SumOf(bpf.tag); },
                        [&](const TextPokeRecord& poke) { sink = SumOf(poke.old_bytes) + SumOf(poke.new_bytes); },
                        [&](const ReadRecord& read) { sink = SumOf(read.values); },
                        [&](const CallchainDeferredRecord& deferred) { sink = SumOf(deferred.chain); },
                        [&](const NamespacesRecord& namespaces) {
                          for (size_t i = 0; i < namespaces.size(); ++i) sink = namespaces[i].inode;
                        },
                        [&](const auto&) {}});
  }
  return 0;
}

}  // namespace perfkit
