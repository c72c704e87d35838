// Parses the records that only some machines, or some ways of recording, write: traces, namespaces, changes of the
// kernel's own code.
#include "src/ring/members.h"

namespace perfkit {

// One using for the file: the members are those of every record.
using ring::Finish;
using ring::Is;
using ring::Members;

std::optional<AuxRecord> AuxRecord::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  if (!Is(record, RecordType::kAux)) return std::nullopt;
  AuxRecord aux;
  Members members(record, layout);
  members.TakeAll(aux.offset, aux.size, aux.flags);
  return Finish(aux, members, record, layout);
}

std::optional<ItraceStartRecord> ItraceStartRecord::Parse(const RawRecord& record,
                                                          const SampleLayout& layout) noexcept {
  if (!Is(record, RecordType::kItraceStart)) return std::nullopt;
  ItraceStartRecord start;
  Members members(record, layout);
  members.TakeAll(start.pid, start.tid);
  return Finish(start, members, record, layout);
}

std::optional<AuxOutputHwIdRecord> AuxOutputHwIdRecord::Parse(const RawRecord& record,
                                                              const SampleLayout& layout) noexcept {
  if (!Is(record, RecordType::kAuxOutputHwId)) return std::nullopt;
  AuxOutputHwIdRecord output;
  Members members(record, layout);
  members.Take(output.hw_id);
  return Finish(output, members, record, layout);
}

std::optional<NamespacesRecord> NamespacesRecord::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  if (!Is(record, RecordType::kNamespaces)) return std::nullopt;
  NamespacesRecord namespaces;
  uint64_t count = 0;
  Members members(record, layout);
  members.TakeAll(namespaces.pid, namespaces.tid, count);
  members.TakeList(namespaces.links, count, sizeof(Link));
  return Finish(namespaces, members, record, layout);
}

std::optional<KsymbolRecord> KsymbolRecord::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  if (!Is(record, RecordType::kKsymbol)) return std::nullopt;
  KsymbolRecord symbol;
  Members members(record, layout);
  members.TakeAll(symbol.address, symbol.length, symbol.type, symbol.flags);
  members.TakeText(symbol.name);
  return Finish(symbol, members, record, layout);
}

std::optional<BpfEventRecord> BpfEventRecord::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  constexpr uint64_t kTagSize = 8;  // BPF_TAG_SIZE
  if (!Is(record, RecordType::kBpfEvent)) return std::nullopt;
  BpfEventRecord bpf;
  Members members(record, layout);
  members.TakeAll(bpf.type, bpf.flags, bpf.program_id);
  members.TakeBytes(bpf.tag, kTagSize);
  return Finish(bpf, members, record, layout);
}

std::optional<CgroupRecord> CgroupRecord::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  if (!Is(record, RecordType::kCgroup)) return std::nullopt;
  CgroupRecord cgroup;
  Members members(record, layout);
  members.Take(cgroup.cgroup);
  members.TakeText(cgroup.path);
  return Finish(cgroup, members, record, layout);
}

std::optional<TextPokeRecord> TextPokeRecord::Parse(const RawRecord& record, const SampleLayout& layout) noexcept {
  if (!Is(record, RecordType::kTextPoke)) return std::nullopt;
  TextPokeRecord poke;
  uint16_t old_size = 0, new_size = 0;
  Members members(record, layout);
  members.TakeAll(poke.address, old_size, new_size);
  members.TakeBytes(poke.old_bytes, old_size);
  members.TakeBytes(poke.new_bytes, new_size);
  return Finish(poke, members, record, layout);
}

std::optional<CallchainDeferredRecord> CallchainDeferredRecord::Parse(const RawRecord& record,
                                                                      const SampleLayout& layout) noexcept {
  if (!Is(record, RecordType::kCallchainDeferred)) return std::nullopt;
  CallchainDeferredRecord deferred;
  uint64_t count = 0;
  Bytes words;
  Members members(record, layout);
  members.TakeAll(deferred.cookie, count);
  members.TakeList(words, count, sizeof(uint64_t));
  deferred.chain = CallChain(Words(words.data(), words.size() / sizeof(uint64_t)));
  return Finish(deferred, members, record, layout);
}

}  // namespace perfkit
