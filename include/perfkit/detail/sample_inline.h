// The bodies of sample.h's templates and inline functions. Included by sample.h; do not include it directly.
#pragma once

#include "perfkit/sample.h"

namespace perfkit {

inline std::optional<uint64_t> SampleLayout::WordOf(const RawRecord& record, Field field) const noexcept {
  if (record.type == static_cast<uint32_t>(RecordType::kSample)) {
    const size_t at = RawRecord::kHeaderSize + early_offset(field);
    if (!has(field) || at + 8 > record.size) return std::nullopt;
    return detail::Load<uint64_t>(record.data + at);
  }
  const size_t back = trailer_offset(field);
  if (back == 0 || back + RawRecord::kHeaderSize > record.size) return std::nullopt;
  return detail::Load<uint64_t>(record.data + record.size - back);
}

// Always inlined: a few comparisons if inlined, a copy of the sample through memory if not.
template <class Layout>
template <size_t... kIndex>
__attribute__((always_inline)) inline bool BasicSample<Layout>::FindFixed(uint32_t spare,
                                                                          std::index_sequence<kIndex...>) noexcept {
  uint32_t at = layout().early_bytes();
  [[maybe_unused]] const auto skip = [&]<size_t kI>() __attribute__((always_inline)) {
    static constexpr detail::Step kStep = Layout::get().late_steps()[kI];
    late_[kI] = static_cast<uint16_t>(at);
    return detail::Skip(kStep, body_, at, spare);
  };
  const bool fits = (skip.template operator()<kIndex>() && ...);
  end_ = static_cast<uint16_t>(at);
  return fits;
}

template <class Layout>
inline bool BasicSample<Layout>::FindLate(uint32_t spare) noexcept {
  uint32_t at = end_;
  for (const detail::Step& step : layout().late_steps()) {
    late_[Layout::LateIndex(step.field)] = static_cast<uint16_t>(at);
    if (!detail::Skip(step, body_, at, spare)) [[unlikely]]
      return false;
  }
  end_ = static_cast<uint16_t>(at);
  return true;
}

template <class Layout>
inline std::optional<BasicSample<Layout>> BasicSample<Layout>::ParseAs(const RawRecord& record,
                                                                       Layout layout) noexcept {
  // The only variable that is returned, so that the compiler constructs it in the caller's memory. Constructed with a
  // sample, because an empty optional would be cleared first and filled then.
  std::optional<BasicSample> parsed(std::in_place, Key(), record, layout);
  const auto size = static_cast<uint32_t>(record.size - RawRecord::kHeaderSize);
  const uint32_t least = layout.get().min_bytes();
  bool fits = record.type == static_cast<uint32_t>(RecordType::kSample) && size >= least;
  if constexpr (std::is_same_v<Layout, detail::RuntimeLayout>) {
    fits = fits && (layout.get().late_fields() == 0 || parsed->FindLate(size - least));
  } else {
    fits = fits && parsed->FindFixed(size - least, std::make_index_sequence<Layout::kLate>());
  }
  if (!fits) [[unlikely]]
    parsed.reset();
  return parsed;
}

template <class Layout>
std::optional<ReadValues> BasicSample<Layout>::read() const noexcept {
  if (!layout().has(Field::kRead)) return std::nullopt;
  const std::byte* const at = At(Field::kRead);
  const uint64_t format = layout().bits().read_format;
  const size_t left = static_cast<size_t>(body_ + size_ - at) / 8;
  return ReadValues::Parse(Words(at, left), format);
}

template <class Layout>
CallChain BasicSample<Layout>::chain() const noexcept {
  if (!layout().has(Field::kCallchain)) return CallChain();
  const std::byte* const at = At(Field::kCallchain);
  return CallChain(Words(at + 8, detail::Load<uint64_t>(at)));
}

template <class Layout>
Bytes BasicSample<Layout>::raw() const noexcept {
  if (!layout().has(Field::kRaw)) return {};
  const std::byte* const at = At(Field::kRaw);
  return {at + 4, detail::Load<uint32_t>(at)};
}

template <class Layout>
BranchStack BasicSample<Layout>::branches() const noexcept {
  if (!layout().has(Field::kBranchStack)) return {};
  const std::byte* at = At(Field::kBranchStack);
  const size_t count = detail::Load<uint64_t>(at);
  at += 8;
  BranchStack stack;
  if ((layout().bits().branch_sample_type & kBranchHwIndex) != 0) {
    stack.hw_index = detail::Load<uint64_t>(at);
    at += 8;
  }
  stack.entries = {at, count * 24};
  if ((layout().bits().branch_sample_type & kBranchCounters) != 0) stack.counters = Words(at + count * 24, count);
  return stack;
}

template <class Layout>
Registers BasicSample<Layout>::RegistersAt(Field field, uint64_t mask) const noexcept {
  if (!layout().has(field)) return {};
  const std::byte* const at = At(field);
  const uint64_t abi = detail::Load<uint64_t>(at);
  if (abi == 0) return {};
  return {abi, mask, Words(at + 8, static_cast<size_t>(std::popcount(mask)))};
}

template <class Layout>
std::optional<uint64_t> BasicSample<Layout>::leaf_caller() const noexcept {
  constexpr uint64_t k64Bit = 2;  // PERF_SAMPLE_REGS_ABI_64
  if (!detail::kLinkRegister || !layout().has(Field::kCallchain)) return std::nullopt;
  const Registers registers = user_registers();
  const std::optional<uint64_t> link = registers[*detail::kLinkRegister];
  if (registers.abi != k64Bit || !link) return std::nullopt;
  return detail::LeafCaller(chain().part(ChainContext::kUser), *link);
}

template <class Layout>
UserStack BasicSample<Layout>::user_stack() const noexcept {
  if (!layout().has(Field::kStackUser)) return {};
  const std::byte* const at = At(Field::kStackUser);
  const uint64_t reserved = detail::Load<uint64_t>(at);
  if (reserved == 0) return {};
  return {{at + 8, detail::Load<uint64_t>(at + 8 + reserved)}, reserved};
}

template <class Layout>
Bytes BasicSample<Layout>::aux() const noexcept {
  if (!layout().has(Field::kAux)) return {};
  const std::byte* const at = At(Field::kAux);
  return {at + 8, detail::Load<uint64_t>(at)};
}

namespace detail {

template <class Record, class Visitor>
bool HandOver(const RawRecord& record, const SampleLayout& layout, Visitor& visit) {
  if constexpr (std::is_invocable_v<Visitor&, const Record&>) {
    const std::optional<Record> parsed = Record::Parse(record, layout);
    if (!parsed) return false;
    visit(*parsed);
  } else if constexpr (std::is_invocable_v<Visitor&, const RawRecord&>) {
    visit(record);
  }
  return true;
}

}  // namespace detail

template <class Visitor>
bool Dispatch(const RawRecord& record, const SampleLayout& layout, Visitor&& visit) {
  switch (static_cast<RecordType>(record.type)) {
    case RecordType::kSample: return detail::HandOver<Sample>(record, layout, visit);
    case RecordType::kMmap:
    case RecordType::kMmap2: return detail::HandOver<MmapRecord>(record, layout, visit);
    case RecordType::kLost: return detail::HandOver<LostRecord>(record, layout, visit);
    case RecordType::kLostSamples: return detail::HandOver<LostSamplesRecord>(record, layout, visit);
    case RecordType::kComm: return detail::HandOver<CommRecord>(record, layout, visit);
    case RecordType::kFork: return detail::HandOver<ForkRecord>(record, layout, visit);
    case RecordType::kExit: return detail::HandOver<ExitRecord>(record, layout, visit);
    case RecordType::kThrottle:
    case RecordType::kUnthrottle: return detail::HandOver<ThrottleRecord>(record, layout, visit);
    case RecordType::kSwitch:
    case RecordType::kSwitchCpuWide: return detail::HandOver<SwitchRecord>(record, layout, visit);
    case RecordType::kRead: return detail::HandOver<ReadRecord>(record, layout, visit);
    case RecordType::kAux: return detail::HandOver<AuxRecord>(record, layout, visit);
    case RecordType::kItraceStart: return detail::HandOver<ItraceStartRecord>(record, layout, visit);
    case RecordType::kAuxOutputHwId: return detail::HandOver<AuxOutputHwIdRecord>(record, layout, visit);
    case RecordType::kNamespaces: return detail::HandOver<NamespacesRecord>(record, layout, visit);
    case RecordType::kKsymbol: return detail::HandOver<KsymbolRecord>(record, layout, visit);
    case RecordType::kBpfEvent: return detail::HandOver<BpfEventRecord>(record, layout, visit);
    case RecordType::kCgroup: return detail::HandOver<CgroupRecord>(record, layout, visit);
    case RecordType::kTextPoke: return detail::HandOver<TextPokeRecord>(record, layout, visit);
    case RecordType::kCallchainDeferred: return detail::HandOver<CallchainDeferredRecord>(record, layout, visit);
  }
  if constexpr (std::is_invocable_v<Visitor&, const RawRecord&>) visit(record);
  return true;
}

}  // namespace perfkit
