// All records but samples: round trips with and without a trailer, truncated at every 8 bytes, and Dispatch.
#include "perfkit/record.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

#include "perfkit/sample.h"
#include "tests/support/record_builder.h"

namespace perfkit {
namespace {

using testing::AsRecord;
using testing::RecordBuilder;

constexpr AttrBits kWho{
    .sample_type = kSampleTid | kSampleTime | kSampleId | kSampleStreamId | kSampleCpu | kSampleIdentifier,
    .read_format = kReadGroup | kReadId,
    .sample_id_all = true};

// A record with the trailer of `bits` after it.
std::string WithTrailer(RecordBuilder builder, RecordType type, uint16_t misc = 0, const AttrBits& bits = kWho) {
  testing::AddTrailer(builder, bits);
  return builder.Finish(type, misc);
}

void CheckWho(const SampleId& who, const AttrBits& bits) {
  const testing::SampleValues values;
  const auto has = [&](uint64_t bit) { return bits.sample_id_all && (bits.sample_type & bit) != 0; };
  CHECK(who.pid == (has(kSampleTid) ? std::optional(values.pid) : std::nullopt));
  CHECK(who.tid == (has(kSampleTid) ? std::optional(values.tid) : std::nullopt));
  CHECK(who.time_ns == (has(kSampleTime) ? std::optional(values.time) : std::nullopt));
  CHECK(who.id == (has(kSampleId) ? std::optional(values.id) : std::nullopt));
  CHECK(who.stream_id == (has(kSampleStreamId) ? std::optional(values.stream_id) : std::nullopt));
  CHECK(who.cpu == (has(kSampleCpu) ? std::optional(values.cpu) : std::nullopt));
  CHECK(who.identifier == (has(kSampleIdentifier) ? std::optional(values.identifier) : std::nullopt));
}

// Parses `body` as a Record with each trailer, and truncated at each 8 bytes, where it must be rejected. A record that
// ends in a text may be truncated within its padding. Time and id of a truncated record are words of its own, or none.
template <class Record>
Record Trip(const RecordBuilder& body, RecordType type, uint16_t misc = 0) {
  for (uint64_t mask = 0; mask < 64; ++mask) {
    AttrBits bits = kWho;
    constexpr uint64_t kBits[] = {kSampleTid, kSampleTime, kSampleId, kSampleStreamId, kSampleCpu, kSampleIdentifier};
    bits.sample_type = 0;
    for (int i = 0; i < 6; ++i) bits.sample_type |= (mask >> i & 1) != 0 ? kBits[i] : 0;
    bits.sample_id_all = mask % 5 != 0;
    const SampleLayout layout(bits);
    const std::string bytes = WithTrailer(body, type, misc, bits);
    const std::optional<Record> record = Record::Parse(AsRecord(bytes), layout);
    REQUIRE(record);
    CheckWho(record->who, bits);
    const std::optional<uint64_t> time = layout.TimeOf(AsRecord(bytes));
    CHECK(time == record->who.time_ns);
    CHECK(layout.IdOf(AsRecord(bytes)) == (record->who.identifier ? record->who.identifier : record->who.id));
  }
  const SampleLayout layout(kWho);
  static std::string bytes;
  bytes = WithTrailer(body, type, misc);
  size_t refused = 0;
  for (size_t size = 8; size < bytes.size(); size += 8) {
    const std::string cut = bytes.substr(0, size);
    if (!Record::Parse(AsRecord(cut), layout)) ++refused;
    // In a ring, another record is before it. The trailer of kWho ends in time, id, stream, CPU and identifier.
    const std::string ring = bytes + cut;
    const RawRecord record = AsRecord(std::string_view(ring).substr(bytes.size()));
    CHECK(layout.TimeOf(record).has_value() == (size >= 8 + 5 * 8));
    CHECK(layout.IdOf(record).has_value() == (size >= 8 + 8));
  }
  CHECK(refused > 0);
  RawRecord other = AsRecord(bytes);
  other.type = 1000;
  CHECK(!Record::Parse(other, layout));
  return *Record::Parse(AsRecord(bytes), layout);
}

TEST_CASE("MMAP and MMAP2", "[record]") {
  const RecordBuilder plain = RecordBuilder().U32(1).U32(2).U64(0x1000).U64(0x2000).U64(0x3000).Text("/lib/x.so");
  const auto map = Trip<MmapRecord>(plain, RecordType::kMmap, kMiscMmapData);
  CHECK(map.pid == 1);
  CHECK(map.tid == 2);
  CHECK(map.address == 0x1000);
  CHECK(map.length == 0x2000);
  CHECK(map.file_offset == 0x3000);
  CHECK(map.name == "/lib/x.so");
  CHECK(map.data);
  CHECK(!map.mmap2);

  RecordBuilder by_inode;
  by_inode.U32(1).U32(2).U64(3).U64(4).U64(5).U32(8).U32(9).U64(10).U64(11).U32(5).U32(2).Text("//anon");
  const auto inode = Trip<MmapRecord>(by_inode, RecordType::kMmap2);
  CHECK(inode.mmap2);
  CHECK(inode.device_major == 8);
  CHECK(inode.device_minor == 9);
  CHECK(inode.inode == 10);
  CHECK(inode.inode_generation == 11);
  CHECK(inode.protection == 5);
  CHECK(inode.flags == 2);
  CHECK(inode.name == "//anon");
  CHECK(inode.build_id.empty());

  RecordBuilder by_build_id;
  by_build_id.U32(1).U32(2).U64(3).U64(4).U64(5).Add(uint8_t{20}).Add(uint8_t{}).U16(0);
  by_build_id.Raw("01234567890123456789").U32(5).U32(2).Text("/bin/true");
  const auto build = Trip<MmapRecord>(by_build_id, RecordType::kMmap2, kMiscMmapBuildId);
  CHECK(testing::Text(build.build_id) == "01234567890123456789");
  CHECK(build.inode == 0);
  CHECK(build.protection == 5);
  CHECK(build.name == "/bin/true");
}

TEST_CASE("a build id has as many bytes as it says, and never more than 20", "[record][corrupt]") {
  for (const uint8_t size : {0, 1, 16, 20, 21, 255}) {
    RecordBuilder body;
    body.U32(1).U32(2).U64(3).U64(4).U64(5).Add(size).Add(uint8_t{}).U16(0);
    body.Raw("01234567890123456789").U32(5).U32(2).Text("x");
    const std::string bytes = body.Finish(RecordType::kMmap2, kMiscMmapBuildId);
    const SampleLayout layout;
    const auto map = MmapRecord::Parse(AsRecord(bytes), layout);
    REQUIRE(map);
    CHECK(map->build_id.size() == std::min<size_t>(size, 20));
  }
}

TEST_CASE("LOST, LOST_SAMPLES, COMM, FORK, EXIT", "[record]") {
  const auto lost = Trip<LostRecord>(RecordBuilder().U64(77).U64(5), RecordType::kLost);
  CHECK(lost.id == 77);
  CHECK(lost.lost == 5);
  CHECK(Trip<LostSamplesRecord>(RecordBuilder().U64(6), RecordType::kLostSamples).lost == 6);
  const auto comm = Trip<CommRecord>(RecordBuilder().U32(1).U32(2).Text("worker"), RecordType::kComm, kMiscCommExec);
  CHECK(comm.pid == 1);
  CHECK(comm.tid == 2);
  CHECK(comm.name == "worker");
  CHECK(comm.exec);
  const RecordBuilder task = RecordBuilder().U32(1).U32(2).U32(3).U32(4).U64(5);
  const auto fork = Trip<ForkRecord>(task, RecordType::kFork);
  CHECK((fork.pid == 1 && fork.parent_pid == 2 && fork.tid == 3 && fork.parent_tid == 4 && fork.time_ns == 5));
  const auto exit = Trip<ExitRecord>(task, RecordType::kExit);
  CHECK((exit.pid == 1 && exit.parent_pid == 2 && exit.tid == 3 && exit.parent_tid == 4 && exit.time_ns == 5));
}

TEST_CASE("THROTTLE, UNTHROTTLE, SWITCH, SWITCH_CPU_WIDE, READ", "[record]") {
  const RecordBuilder when = RecordBuilder().U64(1).U64(2).U64(3);
  const auto throttle = Trip<ThrottleRecord>(when, RecordType::kThrottle);
  CHECK((throttle.throttled && throttle.time_ns == 1 && throttle.id == 2 && throttle.stream_id == 3));
  CHECK(!Trip<ThrottleRecord>(when, RecordType::kUnthrottle).throttled);

  const auto in = Trip<SwitchRecord>(RecordBuilder(), RecordType::kSwitch);
  CHECK((!in.out && !in.preempted && !in.other_pid));
  const auto out = Trip<SwitchRecord>(RecordBuilder(), RecordType::kSwitch, kMiscSwitchOut | kMiscSwitchPreempted);
  CHECK((out.out && out.preempted));
  const auto wide = Trip<SwitchRecord>(RecordBuilder().U32(8).U32(9), RecordType::kSwitchCpuWide, kMiscSwitchOut);
  CHECK((wide.out && !wide.preempted && wide.other_pid == 8u && wide.other_tid == 9u));

  const auto read =
      Trip<ReadRecord>(RecordBuilder().U32(1).U32(2).U64(2).U64(10).U64(11).U64(20).U64(21), RecordType::kRead);
  CHECK((read.pid == 1 && read.tid == 2));
  REQUIRE(read.values.size() == 2);
  CHECK((read.values[0].value == 10 && read.values[0].id == 11u));
  CHECK((read.values[1].value == 20 && read.values[1].id == 21u && !read.values[1].lost));
}

TEST_CASE("AUX, ITRACE_START, AUX_OUTPUT_HW_ID, NAMESPACES", "[record]") {
  const auto aux = Trip<AuxRecord>(RecordBuilder().U64(1).U64(2).U64(3), RecordType::kAux);
  CHECK((aux.offset == 1 && aux.size == 2 && aux.flags == 3));
  const auto start = Trip<ItraceStartRecord>(RecordBuilder().U32(1).U32(2), RecordType::kItraceStart);
  CHECK((start.pid == 1 && start.tid == 2));
  CHECK(Trip<AuxOutputHwIdRecord>(RecordBuilder().U64(9), RecordType::kAuxOutputHwId).hw_id == 9);
  RecordBuilder links;
  links.U32(1).U32(2).U64(3);
  for (uint64_t i = 0; i < 6; ++i) links.U64(50 + i);
  const auto namespaces = Trip<NamespacesRecord>(links, RecordType::kNamespaces);
  REQUIRE(namespaces.size() == 3);
  CHECK((namespaces[2].device == 54 && namespaces[2].inode == 55));
}

TEST_CASE("KSYMBOL, BPF_EVENT, CGROUP, TEXT_POKE", "[record]") {
  const auto symbol =
      Trip<KsymbolRecord>(RecordBuilder().U64(1).U32(2).U16(3).U16(4).Text("bpf_prog_1"), RecordType::kKsymbol);
  CHECK((symbol.address == 1 && symbol.length == 2 && symbol.flags == 4));
  CHECK((symbol.type == KsymbolRecord::Type{3} && !symbol.unregistered()));  // Newer types are passed on.
  CHECK(symbol.name == "bpf_prog_1");
  const auto gone = Trip<KsymbolRecord>(RecordBuilder().U64(1).U32(2).U16(1).U16(1).Text("f"), RecordType::kKsymbol);
  CHECK((gone.type == KsymbolRecord::Type::kBpf && gone.unregistered()));
  const auto bpf = Trip<BpfEventRecord>(RecordBuilder().U16(1).U16(2).U32(3).Raw("taggged!"), RecordType::kBpfEvent);
  CHECK((bpf.type == BpfEventRecord::Type::kProgramLoad && bpf.flags == 2 && bpf.program_id == 3 &&
         testing::Text(bpf.tag) == "taggged!"));
  const auto cgroup = Trip<CgroupRecord>(RecordBuilder().U64(5).Text("/user.slice"), RecordType::kCgroup);
  CHECK((cgroup.cgroup == 5 && cgroup.path == "/user.slice"));
  const auto poke =
      Trip<TextPokeRecord>(RecordBuilder().U64(5).U16(3).U16(4).Raw("abcdefg").Pad(), RecordType::kTextPoke);
  CHECK((poke.address == 5 && testing::Text(poke.old_bytes) == "abc" && testing::Text(poke.new_bytes) == "defg"));
}

TEST_CASE("CALLCHAIN_DEFERRED", "[record]") {
  const auto deferred = Trip<CallchainDeferredRecord>(RecordBuilder().U64(42).U64(3).U64(-512).U64(1).U64(2),
                                                      RecordType::kCallchainDeferred);
  CHECK(deferred.cookie == 42);
  const Words user = deferred.chain.part(ChainContext::kUser);
  REQUIRE(user.size() == 2);
  CHECK(user[1] == 2);
}

TEST_CASE("counts and texts that lie are refused", "[record][corrupt]") {
  const SampleLayout layout;
  const auto refused = [&]<class Record>(const RecordBuilder& body, RecordType type, Record) {
    const std::string bytes = body.Finish(type);
    return !Record::Parse(AsRecord(bytes), layout);
  };
  for (const uint64_t count : {uint64_t{2}, uint64_t{1} << 60, ~uint64_t{0}, (uint64_t{1} << 60) + 1}) {
    CHECK(refused(RecordBuilder().U32(1).U32(2).U64(count).U64(1).U64(1), RecordType::kNamespaces, NamespacesRecord()));
    CHECK(refused(RecordBuilder().U64(1).U64(count).U64(1), RecordType::kCallchainDeferred, CallchainDeferredRecord()));
  }
  CHECK(refused(RecordBuilder().U32(1).U32(2).Raw("no end!!"), RecordType::kComm, CommRecord()));
  CHECK(refused(RecordBuilder().U64(1).U16(8).U16(1).Raw("12345678"), RecordType::kTextPoke, TextPokeRecord()));
}

TEST_CASE("Dispatch gives each record to who wants it, and all others raw or not at all", "[record]") {
  const SampleLayout layout(AttrBits{.sample_type = kSampleIp});
  const std::string sample = testing::BuildSample(layout.bits());
  const std::string lost = RecordBuilder().U64(1).U64(2).Finish(RecordType::kLost);
  const std::string newer = RecordBuilder().U64(1).Finish(99, 0);
  const std::string short_lost = RecordBuilder().U64(1).Finish(RecordType::kLost);
  std::string seen;
  const auto both = Overloaded{[&](const Sample& s) { seen += s.ip() == 0x401000u ? 's' : '?'; },
                               [&](const LostRecord& l) { seen += l.lost == 2 ? 'l' : '?'; }};
  CHECK(Dispatch(AsRecord(sample), layout, both));
  CHECK(Dispatch(AsRecord(lost), layout, both));
  CHECK(Dispatch(AsRecord(newer), layout, both));
  CHECK(!Dispatch(AsRecord(short_lost), layout, both));
  CHECK(seen == "sl");
  const auto raw = [&](const RawRecord& record) { seen += std::to_string(record.type); };
  CHECK(Dispatch(AsRecord(newer), layout, raw));
  CHECK(Dispatch(AsRecord(short_lost), layout, raw));  // it is not parsed
  CHECK(seen == "sl992");
  const auto any = [&](const auto&) { seen += '*'; };
  CHECK(Dispatch(AsRecord(newer), layout, any));
  CHECK(!Dispatch(AsRecord(short_lost), layout, any));
  CHECK(seen == "sl992*");
}

TEST_CASE("Dispatch has a parser for every type there is a name for", "[record]") {
  const SampleLayout layout;
  for (uint32_t type = 0; type < 40; ++type) {
    bool parsed = false, raw = false;
    const std::string zeros(400, '\0');
    const std::string bytes = RecordBuilder().Raw(zeros).Finish(type, 0);
    Dispatch(AsRecord(bytes), layout,
             Overloaded{[&](const auto&) { parsed = true; }, [&](const RawRecord&) { raw = true; }});
    INFO("type " << type);
    const bool known = !RecordTypeName(type).empty();
    CHECK(parsed == known);
    CHECK(raw == !known);
  }
  CHECK(RecordTypeName(22) == "CALLCHAIN_DEFERRED");
  CHECK(RecordTypeName(~0u) == "");
}

}  // namespace
}  // namespace perfkit
