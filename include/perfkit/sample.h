// What a sample holds, as views into its bytes: nothing is copied, nothing allocates.
//
// Which fields a sample has is decided by its event's attr. A Sample finds them by a SampleLayout, at run time; a
// FixedSample<bits> knows them when it is compiled, for programs that know what they ask for. Both have one interface.
//
// The order of the fields is that of perf_output_sample (kernel/events/core.c); the comment in the uapi header is
// wrong.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "perfkit/detail/sample_fields.h"
#include "perfkit/record.h"

namespace perfkit {

// The privilege level of a part of a call chain: PERF_CONTEXT_*. A kUserDeferred part is one word: the cookie of the
// CallchainDeferredRecord that has the pcs.
enum class ChainContext : uint8_t {
  kNone,  // Before the first context marker.
  kHypervisor,
  kKernel,
  kUser,
  kUserDeferred,
  kGuest,
  kGuestKernel,
  kGuestUser,
  kUnknown,  // After a marker that this library does not know, or that is out of order.
};
// A part of a call chain with one context. A view: valid as long as the record.
struct ChainPart {
  ChainContext context = ChainContext::kNone;
  Words pcs;  // Innermost first; all but the first are return addresses.
};

// A call chain. A view: valid as long as the record. The kernel writes one list of pcs and context markers: words from
// PERF_CONTEXT_MAX on, where no code can be. The parts are in the order of ChainContext, each at most once. What
// follows any other marker is kUnknown: it is a newer kernel's, or garbage, as a damaged frame pointer may lead
// anywhere.
class CallChain {
 public:
  class Iterator {
   public:
    using value_type = ChainPart;
    using difference_type = ptrdiff_t;
    Iterator() = default;
    explicit Iterator(Words words) noexcept : left_(words) { ++*this; }
    const ChainPart& operator*() const noexcept { return part_; }
    const ChainPart* operator->() const noexcept { return &part_; }
    Iterator& operator++() noexcept;
    void operator++(int) noexcept { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) noexcept { return it.done_; }

   private:
    Words left_;
    ChainPart part_;
    ChainContext last_ = ChainContext::kNone;  // the last one that is known
    bool done_ = true;
  };

  CallChain() = default;
  explicit CallChain(Words words) noexcept : words_(words) {}

  // Returns the list as written, with its markers.
  Words words() const noexcept { return words_; }
  // Iterate over the parts: for (const ChainPart& part : chain). Parts may be empty; only kUnknown may repeat.
  Iterator begin() const noexcept { return Iterator(words_); }
  std::default_sentinel_t end() const noexcept { return {}; }
  // Returns the pcs of that context; empty if there are none.
  Words part(ChainContext context) const noexcept;

 private:
  Words words_;
};

// One taken branch: struct perf_branch_entry.
struct Branch {
  uint64_t from = 0, to = 0;
  uint64_t flags = 0;

  bool mispredicted() const noexcept { return Bits(0, 1) != 0; }
  bool predicted() const noexcept { return Bits(1, 1) != 0; }  // neither: the hardware does not say
  bool in_transaction() const noexcept { return Bits(2, 1) != 0; }
  bool transaction_abort() const noexcept { return Bits(3, 1) != 0; }
  uint16_t cycles() const noexcept { return static_cast<uint16_t>(Bits(4, 16)); }     // since the last one; 0: unknown
  uint8_t type() const noexcept { return static_cast<uint8_t>(Bits(20, 4)); }         // PERF_BR_*
  uint8_t speculation() const noexcept { return static_cast<uint8_t>(Bits(24, 2)); }  // PERF_BR_SPEC_*
  uint8_t new_type() const noexcept { return static_cast<uint8_t>(Bits(26, 4)); }     // PERF_BR_NEW_*
  uint8_t privilege() const noexcept { return static_cast<uint8_t>(Bits(30, 3)); }    // PERF_BR_PRIV_*

 private:
  uint64_t Bits(unsigned first, unsigned count) const noexcept { return flags >> first & ((1u << count) - 1); }
};

// The latest branches before the sample, newest first. A view: valid as long as the record.
struct BranchStack {
  Bytes entries;
  std::optional<uint64_t> hw_index;  // With kBranchHwIndex: index of the newest in the hardware's stack.
  Words counters;                    // With kBranchCounters: one word for each branch.

  size_t size() const noexcept { return entries.size() / 24; }
  bool empty() const noexcept { return entries.empty(); }
  Branch operator[](size_t i) const noexcept {
    const std::byte* const at = entries.data() + 24 * i;
    return {detail::Load<uint64_t>(at), detail::Load<uint64_t>(at + 8), detail::Load<uint64_t>(at + 16)};
  }
};

// The values of an event, or of its group, at the sample: as read(2) would return them.
class ReadValues {
 public:
  struct Value {
    uint64_t value = 0;
    std::optional<uint64_t> id, lost;
  };

  // Parses the values at the start of `words`, from read(2) or a record. Returns nullopt if they exceed `words`.
  static std::optional<ReadValues> Parse(Words words, uint64_t read_format) noexcept;

  size_t size() const noexcept { return size_; }  // Events of the group; 1 without kReadGroup.
  std::optional<uint64_t> time_enabled_ns() const noexcept;
  std::optional<uint64_t> time_running_ns() const noexcept;
  Value operator[](size_t i) const noexcept;
  // Returns how many of the words they take.
  size_t words() const noexcept { return words_.size(); }

 private:
  Words words_;
  uint64_t format_ = 0;
  size_t size_ = 0;
};

// The registers of attr.sample_regs_user or sample_regs_intr. abi is 0, and there are none, for a thread without user
// code: a kernel thread.
struct Registers {
  uint64_t abi = 0;   // PERF_SAMPLE_REGS_ABI_*: 1 is 32-bit, 2 is 64-bit
  uint64_t mask = 0;  // Bit i: register i of the machine's asm/perf_regs.h is included.
  Words values;       // Their values, in ascending order.

  std::optional<uint64_t> operator[](unsigned reg) const noexcept {
    if (reg > 63 || (mask >> reg & 1) == 0 || values.empty()) return std::nullopt;
    return values[static_cast<size_t>(std::popcount(mask & ((uint64_t{1} << reg) - 1)))];
  }
};

// A copy of the stack from the stack pointer upwards. A view: valid as long as the record.
struct UserStack {
  Bytes bytes;            // The bytes that were copied.
  uint64_t reserved = 0;  // Bytes reserved for it in the record.
};

namespace detail {
// The link register's place in the user registers that are asked for: arch/arm64/include/uapi/asm/perf_regs.h.
#if defined(__aarch64__)
inline constexpr std::optional<unsigned> kLinkRegister = 30;
#else
inline constexpr std::optional<unsigned> kLinkRegister;
#endif

// BasicSample::leaf_caller, of these user pcs and the link register.
std::optional<uint64_t> LeafCaller(Words pcs, uint64_t link) noexcept;
}  // namespace detail

struct TaskId {
  uint32_t pid = 0, tid = 0;
};

// The positions of fields in the records of one event. A value without pointers, to be computed once.
class SampleLayout {
 public:
  constexpr SampleLayout() = default;
  constexpr explicit SampleLayout(const AttrBits& bits) : bits_(bits) {
    for (size_t i = 0; i < kFieldCount; ++i) {
      if ((bits.sample_type & detail::kFields[i].bits) == 0) continue;
      fields_ |= uint32_t{1} << i;
      if (i < kEarly) {
        at_[i] = early_bytes_, early_bytes_ += 8, min_bytes_ += 8;
      } else {
        steps_[late_count_] = detail::StepOf(static_cast<Field>(i), bits);
        min_bytes_ += steps_[late_count_++].least;
      }
    }
    if (!bits.sample_id_all) return;
    for (size_t i = detail::kTrailer.size(); i-- > 0;) {
      if (has(detail::kTrailer[i])) back_[static_cast<size_t>(detail::kTrailer[i])] = trailer_bytes_ += 8;
    }
  }

  constexpr const AttrBits& bits() const { return bits_; }
  constexpr bool has(Field field) const { return (fields_ >> static_cast<unsigned>(field) & 1) != 0; }

  // Returns the time of a record of any type, in nanoseconds of the event's clock; nullopt if it has none.
  std::optional<uint64_t> TimeOf(const RawRecord& record) const noexcept { return WordOf(record, Field::kTime); }
  // Returns the id of the event that wrote a record, from kSampleIdentifier or kSampleId; nullopt if it has neither.
  std::optional<uint64_t> IdOf(const RawRecord& record) const noexcept {
    return WordOf(record, has(Field::kIdentifier) ? Field::kIdentifier : Field::kId);
  }

  // Where a field up to kPeriod begins in a sample's body, and the bytes of all of these.
  constexpr uint16_t early_offset(Field field) const { return at_[static_cast<size_t>(field)]; }
  constexpr uint16_t early_bytes() const { return early_bytes_; }
  // What any sample has at least.
  constexpr uint16_t min_bytes() const { return min_bytes_; }
  // The fields from kRead on: bit i is Field i.
  constexpr uint32_t late_fields() const { return fields_ >> kEarly << kEarly; }
  // How far before a record's end a field of the trailer begins, 0 when it is not there; and the whole trailer.
  constexpr uint16_t trailer_offset(Field field) const { return back_[static_cast<size_t>(field)]; }
  constexpr uint16_t trailer_bytes() const { return trailer_bytes_; }
  // The fields from kRead on, in their order.
  constexpr std::span<const detail::Step> late_steps() const { return {steps_.data(), late_count_}; }

 private:
  static constexpr size_t kEarly = static_cast<size_t>(Field::kRead);
  std::optional<uint64_t> WordOf(const RawRecord& record, Field field) const noexcept;

  AttrBits bits_;
  uint32_t fields_ = 0;  // bit i: Field i
  uint16_t early_bytes_ = 0, min_bytes_ = 0;
  uint16_t trailer_bytes_ = 0;
  uint16_t late_count_ = 0;
  std::array<detail::Step, kFieldCount - kEarly> steps_{};
  std::array<uint16_t, kEarly> at_{};
  std::array<uint16_t, kEarly> back_{};
};

namespace detail {

// Where a BasicSample has its layout from, and where it keeps the place of a field from kRead on: of all, or (when
// it is known which there are) of those that there are.
struct RuntimeLayout {
  static constexpr size_t kLate = kFieldCount - kFirstLate;
  const SampleLayout* layout = nullptr;
  const SampleLayout& get() const noexcept { return *layout; }
  static constexpr size_t LateIndex(Field field) noexcept { return static_cast<size_t>(field) - kFirstLate; }
};
template <AttrBits kBits>
struct FixedLayout {
  static constexpr SampleLayout kLayout{kBits};
  static constexpr size_t kLate = std::popcount(kLayout.late_fields());
  static constexpr const SampleLayout& get() noexcept { return kLayout; }
  static constexpr size_t LateIndex(Field field) noexcept {
    return std::popcount(kLayout.late_fields() & ((uint32_t{1} << static_cast<unsigned>(field)) - 1));
  }
};

}  // namespace detail

// A sample. A view: valid as long as the record and, for a Sample, the layout. A field that the layout does not have is
// nullopt or empty. Parse checks all counts against the bytes of the record. Thread-safe to read.
template <class Layout>
class BasicSample {
 public:
  // Returns nullopt if `record` is not a sample of this layout: a field would exceed it.
  static std::optional<BasicSample> Parse(const RawRecord& record, const SampleLayout& layout) noexcept requires
      std::is_same_v<Layout, detail::RuntimeLayout> {
    return ParseAs(record, Layout{&layout});
  }
  static void Parse(const RawRecord& record, SampleLayout&& layout) = delete;  // must outlive the sample
  static std::optional<BasicSample> Parse(const RawRecord& record) noexcept
      requires(!std::is_same_v<Layout, detail::RuntimeLayout>) {
    return ParseAs(record, Layout{});
  }

  CpuMode cpu_mode() const noexcept { return static_cast<CpuMode>(misc_ & kMiscCpuMode); }
  bool exact_ip() const noexcept { return (misc_ & kMiscExactIp) != 0; }

  std::optional<uint64_t> identifier() const noexcept { return Early(Field::kIdentifier); }
  std::optional<uint64_t> ip() const noexcept { return Early(Field::kIp); }
  std::optional<TaskId> task() const noexcept {
    const std::optional<uint64_t> word = Early(Field::kTid);
    if (!word) return std::nullopt;
    return TaskId{static_cast<uint32_t>(*word), static_cast<uint32_t>(*word >> 32)};
  }
  std::optional<uint64_t> time_ns() const noexcept { return Early(Field::kTime); }
  std::optional<uint64_t> address() const noexcept { return Early(Field::kAddr); }
  std::optional<uint64_t> id() const noexcept { return Early(Field::kId); }
  std::optional<uint64_t> stream_id() const noexcept { return Early(Field::kStreamId); }
  std::optional<uint32_t> cpu() const noexcept {
    const std::optional<uint64_t> word = Early(Field::kCpu);
    return word ? std::optional(static_cast<uint32_t>(*word)) : std::nullopt;
  }
  // Returns the period: events that the sample stands for, for clocks nanoseconds.
  std::optional<uint64_t> period() const noexcept { return Early(Field::kPeriod); }

  std::optional<ReadValues> read() const noexcept;
  CallChain chain() const noexcept;
  // arm64, with CallStack::FramePointers: returns the return address that the user part of the chain lacks between its
  // first and second pc; nullopt if the chain has that caller, and on other machines. The kernel follows frame records.
  // If a function has none (a leaf, or in its prologue or epilogue), only the link register has its caller.
  //
  // If the address lies in the function of the first pc, it is not a caller: the function has a frame record, and the
  // register holds the return address of its last call. The function's name tells.
  std::optional<uint64_t> leaf_caller() const noexcept;
  // A tracepoint's fields (src/ring/tracepoint_format.h knows them), padded to words.
  Bytes raw() const noexcept;
  BranchStack branches() const noexcept;
  Registers user_registers() const noexcept { return RegistersAt(Field::kRegsUser, layout().bits().regs_user); }
  Registers interrupt_registers() const noexcept { return RegistersAt(Field::kRegsIntr, layout().bits().regs_intr); }
  UserStack user_stack() const noexcept;
  // With kSampleWeightStruct three numbers: u32, u16, u16 from the lowest bit on (WeightParts of data_source.h).
  std::optional<uint64_t> weight() const noexcept { return Late(Field::kWeight); }
  std::optional<uint64_t> data_source() const noexcept { return Late(Field::kDataSrc); }  // data_source.h
  std::optional<uint64_t> transaction() const noexcept { return Late(Field::kTransaction); }
  std::optional<uint64_t> physical_address() const noexcept { return Late(Field::kPhysAddr); }
  std::optional<uint64_t> cgroup() const noexcept { return Late(Field::kCgroup); }
  std::optional<uint64_t> data_page_bytes() const noexcept { return Late(Field::kDataPageSize); }
  std::optional<uint64_t> code_page_bytes() const noexcept { return Late(Field::kCodePageSize); }
  Bytes aux() const noexcept;
  // Returns what follows the last known field: padding, or fields of a newer kernel.
  Bytes rest() const noexcept { return {body_ + end_, static_cast<size_t>(size_ - end_)}; }

  const SampleLayout& layout() const noexcept { return layout_.get(); }

 private:
  struct Key {};

 public:
  // For Parse, which builds it in its place.
  BasicSample(Key, const RawRecord& record, Layout layout) noexcept
      : body_(record.data + RawRecord::kHeaderSize),
        layout_(layout),
        misc_(record.misc),
        size_(static_cast<uint16_t>(record.size - RawRecord::kHeaderSize)),
        end_(layout.get().early_bytes()) {}

 private:
  static std::optional<BasicSample> ParseAs(const RawRecord& record, Layout layout) noexcept;
  // Both find the late fields, where the record has `spare` bytes besides what they have at least.
  bool FindLate(uint32_t spare) noexcept;
  template <size_t... kIndex>
  bool FindFixed(uint32_t spare, std::index_sequence<kIndex...>) noexcept;

  std::optional<uint64_t> Early(Field field) const noexcept {
    if (!layout().has(field)) return std::nullopt;
    return detail::Load<uint64_t>(body_ + layout().early_offset(field));
  }
  const std::byte* At(Field field) const noexcept { return body_ + late_[Layout::LateIndex(field)]; }
  std::optional<uint64_t> Late(Field field) const noexcept {
    if (!layout().has(field)) return std::nullopt;
    return detail::Load<uint64_t>(At(field));
  }
  Registers RegistersAt(Field field, uint64_t mask) const noexcept;

  const std::byte* body_;
  [[no_unique_address]] Layout layout_;
  uint16_t misc_, size_, end_;
  std::array<uint16_t, Layout::kLate> late_;  // where; of fields that the layout does not have, nothing
};

using Sample = BasicSample<detail::RuntimeLayout>;

// A sample of an event that was opened with exactly these bits. (No alias: gcc 12 dies of those in templates.)
template <AttrBits kBits>
class FixedSample : public BasicSample<detail::FixedLayout<kBits>> {};

// kRead: what an inherited event had counted when its task ended.
struct ReadRecord {
  uint32_t pid = 0, tid = 0;
  ReadValues values;
  SampleId who;

  static std::optional<ReadRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kCallchainDeferred: the user part of earlier samples of this thread whose chains end with this cookie.
struct CallchainDeferredRecord {
  uint64_t cookie = 0;
  CallChain chain;
  SampleId who;

  static std::optional<CallchainDeferredRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// Parses `record` and calls `visit` with what it is: a Sample, or a struct of record.h, or (where `visit` takes no such
// thing, and for types that are newer than this library) the RawRecord itself, or nothing at all. False when the
// record's bytes do not hold what its type and the layout promise: then `visit` is not called.
template <class Visitor>
bool Dispatch(const RawRecord& record, const SampleLayout& layout, Visitor&& visit);

// A visitor made of lambdas: Dispatch(record, layout, Overloaded{[](const Sample&) {…}, [](const LostRecord&) {…}}).
// Add [](const auto&) {} only to say that all else is of no interest; without it that is so, too, and is not parsed.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace perfkit

#include "perfkit/detail/sample_inline.h"
