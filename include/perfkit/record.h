// What the kernel writes into a ring: the types of records, what an attr makes of their layout, and all records but
// samples as plain structs. sample.h has the samples, and Dispatch over all of them.
//
// Constants and layouts are those of include/uapi/linux/perf_event.h as of Linux 6.18, in our own words: headers of
// distributions are older than the kernels that they run on. What is newer still passes through as a RawRecord.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "perfkit/ring_reader.h"

namespace perfkit {

// RawRecord::type. Any other value is a record that is newer than this list.
enum class RecordType : uint32_t {
  kMmap = 1,
  kLost = 2,
  kComm = 3,
  kExit = 4,
  kThrottle = 5,
  kUnthrottle = 6,
  kFork = 7,
  kRead = 8,
  kSample = 9,
  kMmap2 = 10,
  kAux = 11,
  kItraceStart = 12,
  kLostSamples = 13,
  kSwitch = 14,
  kSwitchCpuWide = 15,
  kNamespaces = 16,
  kKsymbol = 17,
  kBpfEvent = 18,
  kCgroup = 19,
  kTextPoke = 20,
  kAuxOutputHwId = 21,
  kCallchainDeferred = 22,
};
// "MMAP", "LOST", …; "" for types that are not known.
std::string_view RecordTypeName(uint32_t type) noexcept;

// RawRecord::misc: the low three bits are a CpuMode; what the others mean depends on the type.
inline constexpr uint16_t kMiscCpuMode = 7;
inline constexpr uint16_t kMiscMmapData = 1 << 13;         // kMmap, kMmap2: not executable
inline constexpr uint16_t kMiscCommExec = 1 << 13;         // kComm: by exec
inline constexpr uint16_t kMiscSwitchOut = 1 << 13;        // kSwitch, kSwitchCpuWide
inline constexpr uint16_t kMiscExactIp = 1 << 14;          // kSample: the ip is that of the event itself, not later
inline constexpr uint16_t kMiscSwitchPreempted = 1 << 14;  // kSwitch, kSwitchCpuWide, going out: could have run on
inline constexpr uint16_t kMiscMmapBuildId = 1 << 14;      // kMmap2: a build id stands where device and inode would
enum class CpuMode : uint8_t { kUnknown, kKernel, kUser, kHypervisor, kGuestKernel, kGuestUser };

// perf_event_attr.sample_type.
enum SampleBit : uint64_t {
  kSampleIp = 1 << 0,
  kSampleTid = 1 << 1,
  kSampleTime = 1 << 2,
  kSampleAddr = 1 << 3,
  kSampleRead = 1 << 4,
  kSampleCallchain = 1 << 5,
  kSampleId = 1 << 6,
  kSampleCpu = 1 << 7,
  kSamplePeriod = 1 << 8,
  kSampleStreamId = 1 << 9,
  kSampleRaw = 1 << 10,
  kSampleBranchStack = 1 << 11,
  kSampleRegsUser = 1 << 12,
  kSampleStackUser = 1 << 13,
  kSampleWeight = 1 << 14,
  kSampleDataSrc = 1 << 15,
  kSampleIdentifier = 1 << 16,
  kSampleTransaction = 1 << 17,
  kSampleRegsIntr = 1 << 18,
  kSamplePhysAddr = 1 << 19,
  kSampleAux = 1 << 20,
  kSampleCgroup = 1 << 21,
  kSampleDataPageSize = 1 << 22,
  kSampleCodePageSize = 1 << 23,
  kSampleWeightStruct = 1 << 24,
};

// perf_event_attr.read_format.
enum ReadBit : uint64_t {
  kReadTimeEnabled = 1,
  kReadTimeRunning = 2,
  kReadId = 4,
  kReadGroup = 8,
  kReadLost = 16,
};

// perf_event_attr.branch_sample_type, as far as it changes the layout.
inline constexpr uint64_t kBranchHwIndex = 1 << 17;
inline constexpr uint64_t kBranchCounters = 1 << 19;

// Those members of an attr that decide where things are in a record. Can be a template argument.
struct AttrBits {
  uint64_t sample_type = 0;  // SampleBits
  uint64_t read_format = 0;  // ReadBits
  uint64_t branch_sample_type = 0;
  uint64_t regs_user = 0;  // sample_regs_user
  uint64_t regs_intr = 0;  // sample_regs_intr
  bool sample_id_all = false;

  friend constexpr bool operator==(const AttrBits&, const AttrBits&) = default;
};

// The fields of a sample, in the order in which they are written.
enum class Field : uint8_t {
  kIdentifier,
  kIp,
  kTid,
  kTime,
  kAddr,
  kId,
  kStreamId,
  kCpu,
  kPeriod,  // a word each: at fixed places
  kRead,
  kCallchain,
  kRaw,
  kBranchStack,
  kRegsUser,
  kStackUser,
  kWeight,
  kDataSrc,
  kTransaction,
  kRegsIntr,
  kPhysAddr,
  kCgroup,
  kDataPageSize,
  kCodePageSize,
  kAux,
};
inline constexpr size_t kFieldCount = 24;

class SampleLayout;  // sample.h

// A view of 64-bit words of any alignment, e.g. the pcs of a call chain. Valid as long as the record that it is from.
// Like std::span, it does not check indices.
class Words {
 public:
  class Iterator {
   public:
    using value_type = uint64_t;
    using difference_type = ptrdiff_t;
    Iterator() = default;
    explicit Iterator(const std::byte* at) : at_(at) {}
    uint64_t operator*() const noexcept { return detail::Load<uint64_t>(at_); }
    Iterator& operator++() noexcept { return at_ += 8, *this; }
    Iterator operator++(int) noexcept { return Iterator(std::exchange(at_, at_ + 8)); }
    friend bool operator==(Iterator, Iterator) = default;

   private:
    const std::byte* at_ = nullptr;
  };

  Words() = default;
  // Views `count` words from `data` on. Requires 8 * count readable bytes.
  Words(const std::byte* data, size_t count) noexcept : data_(data), size_(count) {}

  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  uint64_t operator[](size_t i) const noexcept { return detail::Load<uint64_t>(data_ + 8 * i); }
  Words subspan(size_t from, size_t count) const noexcept { return {data_ + 8 * from, count}; }
  Bytes bytes() const noexcept { return {data_, 8 * size_}; }
  Iterator begin() const noexcept { return Iterator(data_); }
  Iterator end() const noexcept { return Iterator(data_ + 8 * size_); }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// The trailer of every record but samples (attr.sample_id_all): what the attr's sample_type has of these.
struct SampleId {
  std::optional<uint32_t> pid, tid;
  std::optional<uint64_t> time_ns;
  std::optional<uint64_t> id, stream_id, identifier;
  std::optional<uint32_t> cpu;
};

// The records. Each Parse returns nullopt if the bytes are not such a record: too short, a count too large, or a text
// without its end. Texts and Bytes are views, valid as long as the record; an empty text is never null. `who` is the
// trailer of the record; it is empty for layouts without sample_id_all.

// kMmap, kMmap2: a new mapping. The fields from `protection` on require `mmap2`.
struct MmapRecord {
  uint32_t pid = 0, tid = 0;
  uint64_t address = 0, length = 0, file_offset = 0;
  std::string_view name;  // a path, "//anon", "[vdso]", …
  bool mmap2 = false;
  uint32_t protection = 0, flags = 0;           // PROT_*, MAP_*
  uint32_t device_major = 0, device_minor = 0;  // without build id
  uint64_t inode = 0, inode_generation = 0;     // without build id
  Bytes build_id;                               // at most 20 bytes; empty when there is none
  bool data = false;                            // not executable
  SampleId who;

  static std::optional<MmapRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kLost: the kernel dropped `lost` records for want of room. It is written before the next record that fits, with the
// id of that record's event; the lost records may be of other events in the ring. PERF_FORMAT_LOST is exact.
struct LostRecord {
  uint64_t id = 0, lost = 0;
  SampleId who;

  static std::optional<LostRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kLostSamples: the hardware lost `lost` samples.
struct LostSamplesRecord {
  uint64_t lost = 0;
  SampleId who;

  static std::optional<LostSamplesRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kComm: a thread has a new name.
struct CommRecord {
  uint32_t pid = 0, tid = 0;
  std::string_view name;
  bool exec = false;
  SampleId who;

  static std::optional<CommRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kFork, kExit: a thread starts or ends; a process if pid differs from the parent's.
struct TaskRecord {
  uint32_t pid = 0, parent_pid = 0, tid = 0, parent_tid = 0;
  uint64_t time_ns = 0;
  SampleId who;
};
struct ForkRecord : TaskRecord {
  static std::optional<ForkRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};
struct ExitRecord : TaskRecord {
  static std::optional<ExitRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kThrottle, kUnthrottle: the kernel stops an event that interrupts too often until its next tick, and restarts it.
struct ThrottleRecord {
  bool throttled = false;
  uint64_t time_ns = 0, id = 0, stream_id = 0;
  SampleId who;

  static std::optional<ThrottleRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kSwitch, kSwitchCpuWide: a thread leaves its CPU (`out`) or returns to one.
struct SwitchRecord {
  bool out = false;
  bool preempted = false;             // With `out`: it was still runnable.
  std::optional<uint32_t> other_pid;  // kSwitchCpuWide: the next thread (`out`) or the previous one.
  std::optional<uint32_t> other_tid;
  SampleId who;

  static std::optional<SwitchRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kAux: data was added to the event's AUX area.
struct AuxRecord {
  uint64_t offset = 0, size = 0, flags = 0;  // PERF_AUX_FLAG_*
  SampleId who;

  static std::optional<AuxRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kItraceStart: an instruction trace of this thread begins.
struct ItraceStartRecord {
  uint32_t pid = 0, tid = 0;
  SampleId who;

  static std::optional<ItraceStartRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kAuxOutputHwId: the number by which hardware names this event in AUX data.
struct AuxOutputHwIdRecord {
  uint64_t hw_id = 0;
  SampleId who;

  static std::optional<AuxOutputHwIdRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kNamespaces: a process has changed its namespaces. By NET_NS_INDEX … (uapi): device and inode of each.
struct NamespacesRecord {
  struct Link {
    uint64_t device, inode;
  };
  uint32_t pid = 0, tid = 0;
  Bytes links;
  SampleId who;

  size_t size() const noexcept { return links.size() / sizeof(Link); }
  Link operator[](size_t i) const noexcept { return detail::Load<Link>(links.data() + i * sizeof(Link)); }

  static std::optional<NamespacesRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kKsymbol: the kernel registered a named range of its own code that is not in its image, or unregistered it.
struct KsymbolRecord {
  // PERF_RECORD_KSYMBOL_TYPE_*. Any other value is newer than this list.
  enum class Type : uint16_t {
    kUnknown = 0,
    kBpf = 1,        // Code of BPF: compiled programs, and trampolines.
    kOutOfLine = 2,  // Code that the kernel generated elsewhere: trampolines of ftrace, copies of probed instructions.
  };
  static constexpr uint16_t kUnregister = 1 << 0;  // PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER.

  uint64_t address = 0;
  uint32_t length = 0;  // In bytes.
  Type type = Type::kUnknown;
  uint16_t flags = 0;  // kUnregister, or bits that are newer than this list.
  std::string_view name;
  SampleId who;

  // Returns true if the range was unregistered, false if it was registered.
  bool unregistered() const noexcept { return (flags & kUnregister) != 0; }

  static std::optional<KsymbolRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kBpfEvent: a BPF program was loaded or unloaded.
struct BpfEventRecord {
  // PERF_BPF_EVENT_*. Any other value is newer than this list.
  enum class Type : uint16_t { kUnknown = 0, kProgramLoad = 1, kProgramUnload = 2 };

  Type type = Type::kUnknown;
  uint16_t flags = 0;  // The kernel defines none, as of Linux 6.18: always 0.
  uint32_t program_id = 0;
  Bytes tag;  // 8 bytes: a hash of the program's instructions (bpf_prog_info.tag).
  SampleId who;

  static std::optional<BpfEventRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kCgroup: a cgroup of samples' cgroup field, and its path.
struct CgroupRecord {
  uint64_t cgroup = 0;
  std::string_view path;
  SampleId who;

  static std::optional<CgroupRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

// kTextPoke: kernel code was changed in place.
struct TextPokeRecord {
  uint64_t address = 0;
  Bytes old_bytes, new_bytes;
  SampleId who;

  static std::optional<TextPokeRecord> Parse(const RawRecord& record, const SampleLayout& layout) noexcept;
};

}  // namespace perfkit
