// Parses the records that only some machines or some ways of recording write: hardware traces, namespaces, cgroups,
// code that the kernel generates or changes. As in record.cc, with one rule for all counts in them: they are compared
// with the bytes that are left before anything is made of them.
#include "src/ring/record_fields.h"

namespace perfkit {

using ring::Finish;
using ring::Is;
using ring::RecordFields;

std::optional<AuxRecord> AuxRecord::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  if (!Is(record, RecordType::kAux)) return std::nullopt;
  AuxRecord aux;
  RecordFields fields(record, layout);
  fields.TakeAll(aux.offset, aux.size, aux.flags);
  return Finish(aux, fields, record, layout);
}

std::optional<ItraceStartRecord> ItraceStartRecord::Parse(const RawRecord& record,
                                                          const SampleLayout& layout) noexcept {
  if (!Is(record, RecordType::kItraceStart)) return std::nullopt;
  ItraceStartRecord start;
  RecordFields fields(record, layout);
  fields.TakeAll(start.pid, start.tid);
  return Finish(start, fields, record, layout);
}

std::optional<AuxOutputHwIdRecord> AuxOutputHwIdRecord::Parse(const RawRecord& record,
                                                              const SampleLayout& layout) noexcept {
  if (!Is(record, RecordType::kAuxOutputHwId)) return std::nullopt;
  AuxOutputHwIdRecord output;
  RecordFields fields(record, layout);
  fields.Take(output.hw_id);
  return Finish(output, fields, record, layout);
}

std::optional<NamespacesRecord> NamespacesRecord::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  if (!Is(record, RecordType::kNamespaces)) return std::nullopt;
  NamespacesRecord namespaces;
  uint64_t count = 0;
  RecordFields fields(record, layout);
  fields.TakeAll(namespaces.pid, namespaces.tid, count);
  fields.TakeList(namespaces.links, count, sizeof(Link));
  return Finish(namespaces, fields, record, layout);
}

std::optional<KsymbolRecord> KsymbolRecord::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  if (!Is(record, RecordType::kKsymbol)) return std::nullopt;
  KsymbolRecord symbol;
  RecordFields fields(record, layout);
  fields.TakeAll(symbol.address, symbol.length, symbol.type, symbol.flags);
  fields.TakeText(symbol.name);
  return Finish(symbol, fields, record, layout);
}

std::optional<BpfEventRecord> BpfEventRecord::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  constexpr uint64_t kTagSize = 8;  // BPF_TAG_SIZE
  if (!Is(record, RecordType::kBpfEvent)) return std::nullopt;
  BpfEventRecord bpf;
  RecordFields fields(record, layout);
  fields.TakeAll(bpf.type, bpf.flags, bpf.program_id);
  fields.TakeBytes(bpf.tag, kTagSize);
  return Finish(bpf, fields, record, layout);
}

std::optional<CgroupRecord> CgroupRecord::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  if (!Is(record, RecordType::kCgroup)) return std::nullopt;
  CgroupRecord cgroup;
  RecordFields fields(record, layout);
  fields.Take(cgroup.cgroup);
  fields.TakeText(cgroup.path);
  return Finish(cgroup, fields, record, layout);
}

std::optional<TextPokeRecord> TextPokeRecord::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  if (!Is(record, RecordType::kTextPoke)) return std::nullopt;
  TextPokeRecord poke;
  uint16_t old_size = 0, new_size = 0;
  RecordFields fields(record, layout);
  fields.TakeAll(poke.address, old_size, new_size);
  // Both lengths are known before the bytes begin.
  fields.TakeBytes(poke.old_bytes, old_size);
  fields.TakeBytes(poke.new_bytes, new_size);
  return Finish(poke, fields, record, layout);
}

std::optional<CallchainDeferredRecord> CallchainDeferredRecord::Parse(const RawRecord& record,
                                                                      const SampleLayout& layout) noexcept {
  if (!Is(record, RecordType::kCallchainDeferred)) return std::nullopt;
  CallchainDeferredRecord deferred;
  uint64_t count = 0;
  Bytes words;
  RecordFields fields(record, layout);
  fields.TakeAll(deferred.cookie, count);
  fields.TakeList(words, count, sizeof(uint64_t));
  deferred.chain = CallChain(Words(words.data(), words.size() / sizeof(uint64_t)));
  return Finish(deferred, fields, record, layout);
}

}  // namespace perfkit
