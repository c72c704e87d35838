// Feeds every fuzz target its seeds and thousands of mutations of them: the same ones in every run.
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/elf/elf_builder.h"
#include "tests/fuzz/elf_fuzz.cc"
#include "tests/fuzz/event_name_fuzz.cc"
#include "tests/fuzz/sysfs_fuzz.cc"

namespace perfkit {
namespace {

using Target = int (*)(const uint8_t*, size_t);
using Seeds = std::vector<std::string>;

// One small change; what a fuzzer without coverage can do.
void Mutate(std::string& text, const Seeds& seeds, std::mt19937& random) {
  const size_t at = text.empty() ? 0 : random() % text.size();
  const std::string& other = seeds[random() % seeds.size()];
  switch (random() % 7) {
    case 0: text.insert(at, 1, static_cast<char>(random())); break;
    case 1: text.erase(at, 1 + random() % 4); break;
    case 2:
      if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1u << random() % 8));
      break;
    case 3:
      if (!text.empty()) text[at] = "\0\xff\x7f,:/={}0-"[random() % 11];
      break;
    case 4: text.insert(at, other.substr(other.size() / 2, 1 + random() % 16)); break;
    case 5: text.replace(at, std::string::npos, other.substr(std::min(other.size(), at))); break;
    case 6: text.insert(at, text.substr(at, 8)); break;
  }
}

void Replay(Target target, const Seeds& seeds, int rounds) {
  std::mt19937 random(2026);
  const auto run = [&](const std::string& text) {
    // A copy of exactly that size, so that a sanitizer sees the byte behind it.
    const std::vector<uint8_t> bytes(text.begin(), text.end());
    CHECK(target(bytes.data(), bytes.size()) == 0);
  };
  run("");
  for (const std::string& seed : seeds) run(seed);
  for (int round = 0; round < rounds; ++round) {
    std::string text = seeds[random() % seeds.size()];
    for (unsigned changes = 1 + random() % 4; changes > 0; --changes) Mutate(text, seeds, random);
    run(text);
  }
}

TEST_CASE("event names, fuzzed", "[fuzz]") {
  Replay(
      FuzzEventName,
      {"cycles:ukhGHpppDSWe", "L1-dcache-load-misses", "r01c0:pp", "msr/tsc,name='a,b'/u", "msr/event=0x11,config1=7/",
       "{cycles:u,instructions}:k,cs", "mem:0x601040/8:rw:u", "sched:sched_switch:k", "uprobe:/proc/self/exe:main:u",
       "uretprobe:libc.so.6:malloc+0x10", "1:3:u", "software/config=3/", "task-clock,page-faults"},
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

}  // namespace
}  // namespace perfkit
