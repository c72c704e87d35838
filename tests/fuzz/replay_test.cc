// Feeds every fuzz target its seeds and thousands of mutations of them: the same ones in every run.
#include "tests/fuzz/replay.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/elf/elf_builder.h"
#include "tests/fuzz/elf_fuzz.cc"
#include "tests/fuzz/event_name_fuzz.cc"
#include "tests/fuzz/jit_map_fuzz.cc"
#include "tests/fuzz/kallsyms_fuzz.cc"
#include "tests/fuzz/maps_fuzz.cc"
#include "tests/fuzz/metric_fuzz.cc"
#include "tests/fuzz/record_fuzz.cc"
#include "tests/fuzz/ring_fuzz.cc"
#include "tests/fuzz/sysfs_fuzz.cc"
#include "tests/fuzz/tracepoint_format_fuzz.cc"
#include "tests/support/record_builder.h"

namespace perfkit {
namespace {

// The bytes that rings, records and formats together are fed, at least.
constexpr uint64_t kCampaignBytes = 120'000'000;

using testing::Replay;
using testing::Seeds;

TEST_CASE("event names, fuzzed", "[fuzz]") {
  Replay(
      FuzzEventName,
      {"cycles:ukhGHpppDSWe", "L1-dcache-load-misses", "r01c0:pp", "msr/tsc,name='a,b'/u", "msr/event=0x11,config1=7/",
       "{cycles:u,instructions}:k,cs", "mem:0x601040/8:rw:u", "sched:sched_switch:k", "uprobe:/proc/self/exe:main:u",
       "uretprobe:libc.so.6:malloc+0x10", "1:3:u", "software/config=3/", "task-clock,page-faults"},
      4000);
}

TEST_CASE("metrics, fuzzed", "[fuzz]") {
  Replay(FuzzMetric,
         {"mpki = 1000*LLC-load-misses/instructions [misses/1000 insn]", "(cycles:u - 2.5e3) / (task-clock + seconds)",
          "msr/tsc/ / msr/event=0x0/u", "page-faults / duration_time * 1e9 [/s]", "a/b/c", "mem:0x601040/8:rw / cycles",
          "sched:sched_switch/task-clock", "100 * branch-misses / branches / faults"},
         4000);
}

TEST_CASE("sysfs files, fuzzed", "[fuzz]") {
  // The first byte picks the file.
  Replay(FuzzSysfs,
         {std::string("\0", 1) + "33\n",
          "\1"
          "0-3,8\n",
          "\2"
          "0\n",
          "\3"
          "config:0-7,32-35\n",
          "\4"
          "config1:8\n",
          "\5"
          "event=0x11,flag\n",
          "\6"
          "2.3283064365386962890625e-10",
          "\7"
          "Joules",
          "\10"
          "e,event=?\n"},
         3000);
}

TEST_CASE("maps of processes, fuzzed", "[fuzz]") {
  Replay(FuzzMaps,
         {"7f00-8f00 r-xp 00001000 fd:01 1234    /usr/lib/x.so\n8f00-9000 rw-p 00000000 00:00 0\n",
          "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n"
          "7ffe1000-7ffe3000 r-xp 00000000 00:00 0 [vdso]\n",
          "1000-3000 r-xp 00002000 08:01 5 /a b (deleted)\n2000-2800 rwxs 00002000 08:01 5 /a b\n",
          "0-ffffffffffffffff r-xp ffffffffffffffff ffffffff:ffffffff 18446744073709551615 /x\n"},
         4000);
}

TEST_CASE("lists of JIT code, fuzzed", "[fuzz]") {
  Replay(FuzzJitMap,
         {"1000 10 a\n1000 10 b\n1004 4 c\n", "1000 100 outer\n1020 20 inner\n1040 20 next\n1000 20 first\n",
          "1000 10 a\n0ff8 10 b\n1008 10 c\n0x1000 0x8 d\n", "ffffffffffffff00 ff last\n0 8 null\n0 ffffffffffffffff all\n",
          "1010 10 b\n1000 30 over\n1018 8 c\n1000 10 LazyCompile:~add /app/x.js:3\n"},
         3000);
}

TEST_CASE("kernel symbols, fuzzed", "[fuzz]") {
  Replay(FuzzKallsyms,
         {"ffffffff81000000 T _stext\nffffffff81000000 t startup_64\nffffffff81000100 W weak\n"
          "ffffffff82000000 D data\n",
          "ffffffffc0000000 t nft_do_chain\t[nf_tables]\nffffffffc0001000 t b\t[bpf]\n",
          "0000000000000000 T _stext\n0000000000000000 t other\n", "ffffffffffffffff T last\n"},
         4000);
}

// A program with a bit of everything that the reader knows.
std::string SmallProgram() {
  testing::ElfBuilder builder;
  builder.AddSegment({.p_type = PT_LOAD,
                      .p_flags = PF_R | PF_X,
                      .p_offset = 0,
                      .p_vaddr = 0x1000,
                      .p_filesz = 0x200,
                      .p_memsz = 0x200});
  builder.AddSegment({.p_type = PT_NOTE, .p_offset = 176, .p_filesz = 20, .p_align = 4});
  builder.AddSection(".note.gnu.build-id", {.sh_type = SHT_NOTE},
                     std::string("\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\1\2\3\4", 20));
  const std::string symbols = testing::SymbolBytes(0, 0, 0, 0) + testing::SymbolBytes(1, STT_FUNC, 1, 0x1010) +
                              testing::SymbolBytes(6, STT_GNU_IFUNC, 1, 0x1020);
  builder.AddSection(".symtab", {.sh_type = SHT_SYMTAB, .sh_link = 4, .sh_entsize = 24}, symbols);
  builder.AddSection(".dynsym", {.sh_type = SHT_DYNSYM, .sh_link = 4, .sh_entsize = 24}, symbols);
  builder.AddSection(".strtab", {.sh_type = SHT_STRTAB}, std::string("\0main\0choose\0", 13));
  builder.AddSection(".gnu.version", {.sh_type = SHT_GNU_versym}, std::string("\0\0\2\0\3\x80", 6));
  return builder.Build();
}

TEST_CASE("ELF files, fuzzed", "[fuzz]") {
  Replay(FuzzElf, {SmallProgram(), SmallProgram().substr(0, 400), testing::ElfBuilder().Build()}, 30'000);
}

TEST_CASE("ELF files, every 8 bytes of the program overwritten", "[fuzz]") {
  const std::string program = SmallProgram();
  for (const uint64_t value : {uint64_t{0}, ~uint64_t{0}, uint64_t{1} << 63, uint64_t{0x100}}) {
    for (size_t at = 0; at + sizeof(value) <= program.size(); ++at) {
      std::string changed = program;
      std::memcpy(changed.data() + at, &value, sizeof(value));
      CHECK(FuzzElf(reinterpret_cast<const uint8_t*>(changed.data()), changed.size()) == 0);
    }
  }
}

// Records of many types, one after the other, as an attr with every field would have them.
std::string SomeRecords(const AttrBits& bits) {
  using testing::RecordBuilder;
  std::string records = testing::BuildSample(bits);
  testing::SampleValues in_kernel{.misc = static_cast<uint16_t>(CpuMode::kKernel)};
  in_kernel.chain = {-uint64_t{128}, 1, 2, 3, -uint64_t{512}, 4, 5};
  records += testing::BuildSample(bits, in_kernel);
  RecordBuilder map;
  map.U32(1).U32(2).U64(3).U64(4).U64(5).U32(8).U32(9).U64(10).U64(11).U32(5).U32(2).Text("/bin/true");
  records += map.Finish(RecordType::kMmap2);
  records += map.Finish(RecordType::kMmap2, kMiscMmapBuildId);
  records += RecordBuilder().U32(1).U32(2).Text("comm").Finish(RecordType::kComm);
  records += RecordBuilder().U64(1).U64(2).Finish(RecordType::kLost);
  records += RecordBuilder().U32(1).U32(2).U64(1).U64(3).U64(4).Finish(RecordType::kNamespaces);
  records += RecordBuilder().U32(1).U32(2).U64(1).U64(3).U64(4).U64(5).U64(6).Finish(RecordType::kRead);
  records += RecordBuilder().U64(1).U32(2).U16(3).U16(4).Text("symbol").Finish(RecordType::kKsymbol);
  records += RecordBuilder().U64(1).U16(3).U16(5).Raw("12345678").Finish(RecordType::kTextPoke);
  records += RecordBuilder().U64(1).U64(2).U64(-512).U64(4).Finish(RecordType::kCallchainDeferred);
  return records + RecordBuilder().U64(1).Finish(77, 3);
}

// The attr in front, as FuzzRecord takes it.
std::string RecordSeed(uint64_t sample_type, uint64_t read_format) {
  AttrBits bits{.sample_type = sample_type, .read_format = read_format, .regs_user = 0xff, .regs_intr = 3};
  std::string attr(32, '\0');
  std::memcpy(attr.data(), &bits.sample_type, 4);
  attr[4] = static_cast<char>(read_format);
  std::memcpy(attr.data() + 8, &bits.regs_user, 8);
  std::memcpy(attr.data() + 16, &bits.regs_intr, 8);
  return attr + SomeRecords(bits);
}

Seeds RecordSeeds() {
  return {RecordSeed((1 << 25) - 1, 31), RecordSeed(kSampleIp | kSampleTime | kSampleCallchain, 0),
          RecordSeed(kSampleRegsUser | kSampleStackUser | kSampleRaw, 4),
          RecordSeed(kSampleBranchStack | kSampleRead, 8)};
}

// Head, tail and how, then a ring of 512 or 1024 bytes.
Seeds RingSeeds() {
  Seeds seeds;
  for (const uint64_t how : {0, 1, 2, 3}) {
    for (const uint64_t tail : {uint64_t{0}, uint64_t{0} - 100 * 8, uint64_t{600}}) {
      testing::RecordBuilder start;
      start.U64((how & 1) != 0 ? uint64_t{0} - 512 : tail + 512).U64(tail).U32(~0u).U32(how);
      std::string ring;
      while (ring.size() < 1024) ring += testing::RecordBuilder().U64(ring.size()).U64(1).U64(2).Finish(9, 2);
      seeds.push_back(start.bytes() + ring.substr(0, 1024));
    }
  }
  return seeds;
}

Seeds FormatSeeds() {
  return {std::string("name: x\nID: 7\nformat:\n\tfield:int a;\toffset:0;\tsize:4;\tsigned:1;\n"
                      "\tfield:__data_loc char[] b;\toffset:4;\tsize:4;\tsigned:0;\n"
                      "\tfield:__rel_loc u32[] c;\toffset:8;\tsize:4;\tsigned:0;\n"
                      "\tfield:unsigned long d[2];\toffset:16;\tsize:16;\tsigned:0;\n") +
          std::string(1, '\0') +
          testing::RecordBuilder().U32(1).U32(4 << 16 | 32).U64(8 << 16 | 20).U64(1).U64(2).Raw("abc").bytes() +
          std::string(9, '\0')};
}

TEST_CASE("rings, records and tracepoint formats, fuzzed with 10^8 bytes and more", "[fuzz]") {
  uint64_t fed = Replay(FuzzRing, RingSeeds(), 0, kCampaignBytes / 3, 1);
  fed += Replay(FuzzRecord, RecordSeeds(), 0, kCampaignBytes / 2, 2);
  fed += Replay(FuzzTracepointFormat, FormatSeeds(), 0, kCampaignBytes / 6, 3);
  CHECK(fed >= kCampaignBytes - 3);
}

}  // namespace
}  // namespace perfkit
