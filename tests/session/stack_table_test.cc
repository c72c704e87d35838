// Stacks by their pcs: what is seen again, what is not, and when the table is full.
#include "src/session/stack_table.h"

#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "tests/session/soak.h"
#include "tests/support/record_builder.h"

namespace perfkit::session {
namespace {

using perfkit::testing::AsRecord;
using perfkit::testing::RecordBuilder;

constexpr uint32_t kStackPid = 4711;

struct Table {
  ProfileBuilder builder;
  Symbolizer symbolizer;
  StackTable stacks;
  SampleLayout layout{AttrBits{}};

  explicit Table(StackTable::Limits limits = {1 << 20, 1 << 20}) : stacks(builder, symbolizer, limits) {}

  uint32_t Intern(const std::vector<StackFrame>& frames, uint32_t pid = kStackPid) {
    bool was_cut = false;
    const uint32_t stack = stacks.Intern(pid, frames, was_cut);
    CHECK_FALSE(was_cut);
    return stack;
  }
  // Code of a file is mapped.
  void Map(uint64_t begin, uint64_t bytes, std::string_view path, uint32_t pid = kStackPid) {
    RecordBuilder out;
    out.U32(pid).U32(pid).U64(begin).U64(bytes).U64(0).U32(8).U32(1).U64(path.size()).U64(0);
    out.U32(PROT_EXEC | PROT_READ).U32(MAP_PRIVATE).Text(path);
    const std::string bytes_of = out.Finish(RecordType::kMmap2, 2);
    if (symbolizer.Add(AsRecord(bytes_of), layout)) stacks.ForgetLocations(pid);
  }
  std::vector<uint64_t> AddressesOf(uint32_t stack) const {
    std::vector<uint64_t> addresses;
    const Profile& profile = builder.profile();
    for (; stack != ProfileStack::kRoot; stack = profile.stacks[stack].parent) {
      addresses.push_back(profile.locations[profile.stacks[stack].location].address);
    }
    return addresses;
  }
  uint32_t ModuleOf(uint32_t stack) const {
    return stacks.code_locations()[builder.profile().stacks[stack].location].module;
  }
};

StackFrame Call(uint64_t pc) { return {.pc = pc, .is_return_address = true}; }

TEST_CASE("each distinct stack is one entry", "[stack_table]") {
  Table table;
  table.Map(0, 0x10000, "/no/such/first.so");
  std::mt19937 random(1);
  std::vector<std::vector<StackFrame>> all;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<StackFrame> frames{{.pc = 0x1000 + random() % 64}};
    while (random() % 4 != 0) {
      StackFrame frame = Call(0x2000 + random() % 64);
      frame.is_guess = random() % 8 == 0;
      frames.push_back(frame);
    }
    all.push_back(frames);
  }
  std::vector<uint32_t> entries;
  for (const auto& frames : all) entries.push_back(table.Intern(frames));
  const size_t size = table.builder.profile().stacks.size();
  for (size_t i = 0; i < all.size(); ++i) {
    CHECK(table.Intern(all[i]) == entries[i]);
    std::vector<uint64_t> addresses;
    for (const StackFrame& frame : all[i]) addresses.push_back(frame.code());
    CHECK(table.AddressesOf(entries[i]) == addresses);
  }
  CHECK(table.builder.profile().stacks.size() == size);
}

TEST_CASE("a guess that lies in no code ends the stack", "[stack_table]") {
  Table table;
  table.Map(0, 0x10000, "/no/such/first.so");
  const auto guess = [](uint64_t pc) { return StackFrame{.pc = pc, .is_return_address = true, .is_guess = true}; };
  CHECK(table.AddressesOf(table.Intern({{.pc = 0x1000}, guess(0x2001), guess(0x20000), guess(0x3001)})) ==
        std::vector<uint64_t>{0x1000, 0x2000});
  CHECK(table.AddressesOf(table.Intern({{.pc = 0x1000}, guess(0)})) == std::vector<uint64_t>{0x1000});
  CHECK(table.AddressesOf(table.Intern({{.pc = 0x20000}, Call(0x30001)})) == std::vector<uint64_t>{0x20000, 0x30000});
}

TEST_CASE("frames that were left out have a name, and are no address", "[stack_table]") {
  Table table;
  table.Map(0, 0x10000, "/no/such/first.so");
  const std::vector<StackFrame> deep = {{.pc = 0x1000}, Call(0x2001), StackTable::kLeftOut, Call(0x2001), Call(0x3001)};
  const uint32_t stack = table.Intern(deep);
  CHECK(table.Intern(deep) == stack);
  CHECK(table.Intern({{.pc = 0x1000}, Call(0x2001), Call(0x2001), Call(0x3001)}) != stack);
  std::vector<std::string> names;
  const Profile& profile = table.builder.profile();
  for (uint32_t at = stack; at != ProfileStack::kRoot; at = profile.stacks[at].parent) {
    const uint32_t location = profile.stacks[at].location;
    CHECK(table.stacks.HasOwnName(location) == (names.size() == 2));
    CHECK_FALSE(table.stacks.IsOther(location));
    const std::span<const ProfileCall> calls = profile.CallsAt(location);
    names.push_back(calls.empty() ? "" : profile.strings[calls[0].function]);
  }
  CHECK(names == std::vector<std::string>{"", "", "[frames left out]", "", ""});
}

TEST_CASE("a stack without frames has no entry", "[stack_table]") {
  Table table;
  CHECK(table.Intern({}) == ProfileStack::kRoot);
  CHECK(table.builder.profile().stacks.empty());
}

TEST_CASE("the same pcs in another file are another stack", "[stack_table]") {
  Table table;
  table.Map(0x10000, 0x1000, "/no/such/first.so");
  const uint32_t first = table.Intern({{.pc = 0x10010}, Call(0x10020)});
  CHECK(table.Intern({{.pc = 0x10010}, Call(0x10020)}) == first);
  table.Map(0x10000, 0x1000, "/no/such/second.so");
  const uint32_t second = table.Intern({{.pc = 0x10010}, Call(0x10020)});
  CHECK(second != first);
  CHECK(table.ModuleOf(first) != table.ModuleOf(second));
  table.Map(0x10000, 0x1000, "/no/such/first.so");
  CHECK(table.Intern({{.pc = 0x10010}, Call(0x10020)}) == first);
}

TEST_CASE("the same pcs in another process are another stack, and the same file is the same code", "[stack_table]") {
  constexpr uint32_t kOther = kStackPid + 1;
  Table table;
  table.Map(0x10000, 0x1000, "/no/such/first.so");
  table.Map(0x10000, 0x1000, "/no/such/second.so", kOther);
  table.Map(0x50000, 0x1000, "/no/such/first.so", kOther);
  const uint32_t stack = table.Intern({{.pc = 0x10010}, Call(0x10020)});
  CHECK(table.Intern({{.pc = 0x10010}, Call(0x10020)}, kOther) != stack);
  CHECK(table.Intern({{.pc = 0x50010}, Call(0x50020)}, kOther) == stack);
  CHECK(table.Intern({{.pc = 0x10010}, Call(0x10020)}) == stack);
}

TEST_CASE("what one process maps does not change another's stacks", "[stack_table]") {
  constexpr uint32_t kOther = kStackPid + 1;
  Table table;
  table.Map(0x10000, 0x1000, "/no/such/first.so");
  table.Map(0x10000, 0x1000, "/no/such/first.so", kOther);
  const uint32_t stack = table.Intern({{.pc = 0x10010}, Call(0x10020)});
  CHECK(table.Intern({{.pc = 0x10010}, Call(0x10020)}, kOther) == stack);
  table.Map(0x10000, 0x1000, "/no/such/second.so", kOther);
  CHECK(table.Intern({{.pc = 0x10010}, Call(0x10020)}) == stack);
  CHECK(table.Intern({{.pc = 0x10010}, Call(0x10020)}, kOther) != stack);
}

TEST_CASE("stacks of any number of processes take bounded memory", "[stack_table]") {
  Table table;
  const std::vector<StackFrame> frames(20, Call(0x3000));
  const uint32_t stack = table.Intern(frames, 1);
  const size_t before = HeldBytes().value_or(0);
  for (uint32_t pid = 2; pid < 200'000; ++pid) table.Intern(frames, pid);
  CHECK(HeldBytes().value_or(0) <= before + (32 << 20));
  CHECK(table.Intern(frames, 1) == stack);
}

TEST_CASE("stacks that are remembered no longer are the same ones", "[stack_table]") {
  Table table;
  const std::vector<StackFrame> frames{{.pc = 0x1000}, Call(0x2000)};
  const uint32_t stack = table.Intern(frames);
  std::vector<StackFrame> deep(500, Call(0x3000));
  for (uint64_t i = 0; i < 3000; ++i) {  // more words than the table remembers
    deep[0] = {.pc = 0x10'0000 + 16 * i};
    table.Intern(deep);
  }
  CHECK(table.Intern(frames) == stack);
}

TEST_CASE("in a full table a new stack is its leaf, a known one is whole", "[stack_table]") {
  Table table({.max_stacks = 4, .max_locations = 100});
  const std::vector<StackFrame> known{{.pc = 0x1000}, Call(0x2000), Call(0x3000)};
  const uint32_t stack = table.Intern(known);
  bool was_cut = false;
  const std::vector<StackFrame> other{{.pc = 0x4000}, Call(0x5000)};
  const uint32_t leaf = table.stacks.Intern(kStackPid, other, was_cut);
  CHECK(was_cut);
  CHECK(table.AddressesOf(leaf) == std::vector<uint64_t>{0x4000});
  CHECK(table.Intern(known) == stack);
}

TEST_CASE("in a full table a known stack is whole after the mappings have changed", "[stack_table]") {
  Table table({.max_stacks = 4, .max_locations = 100});
  table.Map(0, 0x10000, "/no/such/first.so");
  const std::vector<StackFrame> known{{.pc = 0x1000}, Call(0x2000), Call(0x3000), Call(0x4000)};
  const uint32_t stack = table.Intern(known);
  table.Map(0x20000, 0x1000, "/no/such/second.so");
  CHECK(table.Intern(known) == stack);
  CHECK(table.Intern({Call(0x2000), Call(0x3000), Call(0x4000)}) == table.builder.profile().stacks[stack].parent);
}

TEST_CASE("ever new addresses take a table of bounded size, and their modules are known", "[stack_table]") {
  constexpr size_t kMaxLocations = 100;
  constexpr uint64_t kBytes = 0x100000, kSecond = 0x200000;
  Table table({.max_stacks = 1000, .max_locations = kMaxLocations});
  table.Map(0, kBytes, "/no/such/first.so");
  table.Map(kSecond, kBytes, "/no/such/second.so");
  const uint32_t first = table.ModuleOf(table.Intern({{.pc = 0}}));
  const uint32_t second = table.ModuleOf(table.Intern({{.pc = kSecond}}));
  size_t others = 0;
  for (uint64_t i = 1; i < 10'000; ++i) {
    for (const uint64_t begin : {uint64_t{0}, kSecond}) {
      const uint32_t leaf = table.Intern({{.pc = begin + 16 * i}});
      CHECK(table.ModuleOf(leaf) == (begin == 0 ? first : second));
      CHECK(table.stacks.EndsInOther(leaf) == (2 * i >= kMaxLocations));
      others += table.stacks.EndsInOther(leaf) ? 1 : 0;
    }
  }
  CHECK(others == 20'000 - kMaxLocations);
  const Profile& profile = table.builder.profile();
  CHECK(profile.locations.size() == kMaxLocations + 2);
  CHECK(profile.stacks.size() == kMaxLocations + 2);
  const uint32_t other = profile.stacks[table.Intern({{.pc = 16 * 9'999}})].location;
  CHECK(profile.CallName(other, profile.CallsAt(other)[0]) == "[other addresses]");
  CHECK(table.AddressesOf(table.Intern({{.pc = 16}})) == std::vector<uint64_t>{16});
  bool was_cut = false;
  CHECK(table.stacks.EndsInOther(
      table.stacks.Intern(kStackPid, std::vector<StackFrame>{{.pc = 0x8008}, Call(17)}, was_cut)));
  CHECK(was_cut);
}

// Each of many stacks calls each of many places of the kernel.
TEST_CASE("stacks that end in the kernel are bounded, too", "[stack_table]") {
  constexpr uint64_t kUser = 100, kKernel = 100;
  constexpr size_t kMaxStacks = 500;
  Table table({.max_stacks = kMaxStacks, .max_locations = kMaxStacks});
  uint64_t cuts = 0, whole = 0;
  for (int round = 0; round < 2; ++round) {
    cuts = whole = 0;
    for (uint64_t user = 0; user < kUser; ++user) {
      bool was_cut = false;
      const StackFrame frame{.pc = 0x1000 + 16 * user};
      const uint32_t stack = table.stacks.Intern(kStackPid, std::span(&frame, 1), was_cut);
      for (uint64_t pc = 0; pc < kKernel; ++pc) {
        const uint32_t entry = table.stacks.InternKernel(stack, {}, 0xffff'8000'0000'0000 + 16 * pc, was_cut);
        ++(was_cut ? cuts : whole);
        CHECK(table.AddressesOf(entry).size() == (was_cut ? 1 : 2));
      }
    }
  }
  CHECK(cuts > 0);
  CHECK(whole > 0);
  CHECK(table.builder.profile().stacks.size() <= kMaxStacks + kUser + kKernel);
}

}  // namespace
}  // namespace perfkit::session
