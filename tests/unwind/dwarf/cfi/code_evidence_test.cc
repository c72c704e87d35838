// What code says by its bytes: PLT stubs, calls, the end of rbp, the entry point.
#include "src/unwind/dwarf/cfi/code_evidence.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>
#include <vector>

#include "tests/elf/elf_builder.h"
#include "tests/unwind/dwarf/cfi/crafted.h"

namespace perfkit {
namespace {

#if defined(__x86_64__)

using testing::Records;
using unwind::CallKind;
using unwind::CodeWindow;
using unwind::Rule;
using unwind::RuleKind;

using Code = std::vector<uint8_t>;

// The window around address 0x1000, with these bytes at it and before it.
CodeWindow At(const Code& bytes, const Code& before = {}) {
  CodeWindow code;
  std::copy(bytes.begin(), bytes.end(), code.bytes + CodeWindow::kBlock);
  std::copy(before.begin(), before.end(), code.bytes + CodeWindow::kBlock - before.size());
  return code;
}

// The call before address 0x1000, with these bytes before it.
unwind::CallBefore CallOf(const Code& bytes) {
  CodeWindow code;
  std::copy(bytes.begin(), bytes.end(), code.bytes + 2 * CodeWindow::kBlock - bytes.size());
  return unwind::FindCallBefore(code, 0x1000);
}

constexpr Rule kNoRule;

Rule BySp(int32_t offset) { return {.offset = offset, .kind = RuleKind::kSp}; }
Rule ByPush(int32_t push) { return {.offset = push, .kind = RuleKind::kPlt}; }

// Bytes of Debian's lld 14 and mold 1.10, as objdump shows them.
const Code kHeader = {0xff, 0x35, 0x2a, 0x22, 0, 0, 0xff, 0x25, 0x2c, 0x22, 0, 0, 0x0f, 0x1f, 0x40, 0};
const Code kEntry = {0xff, 0x25, 0x22, 0x22, 0, 0, 0x68, 1, 0, 0, 0, 0xe9, 0xd0, 0xff, 0xff, 0xff};
const Code kIbtEntry = {0xf3, 0x0f, 0x1e, 0xfa, 0x68, 1, 0, 0, 0, 0xe9, 0xd2, 0xff, 0xff, 0xff, 0x66, 0x90};
const Code kIbtStub = {0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0x26, 0x22, 0, 0, 0x66, 0x0f, 0x1f, 0x44, 0, 0};

TEST_CASE("PLT stubs have rules by their bytes, and nearly the same bytes have none") {
  CHECK(unwind::RuleByCode(At(kEntry), 0x1000) == ByPush(11));
  CHECK(unwind::RuleByCode(At(kEntry), 0x100b) == ByPush(11));
  CHECK(unwind::RuleByCode(At(kIbtEntry), 0x1004) == ByPush(9));
  CHECK(unwind::RuleByCode(At(kIbtStub), 0x1004) == BySp(8));
  CHECK(unwind::RuleByCode(At(kHeader), 0x1000) == BySp(16));
  CHECK(unwind::RuleByCode(At(kHeader), 0x1006) == BySp(24));
  for (const Code& whole : {kHeader, kEntry, kIbtEntry, kIbtStub}) {
    for (size_t i = 0; i < 2; ++i) {
      Code other = whole;
      other[i] ^= 0x40;
      CHECK(unwind::RuleByCode(At(other), 0x1004) == kNoRule);
    }
  }
  CHECK(unwind::RuleByCode(CodeWindow(), 0x1000) == kNoRule);
}

// Bytes of Debian's libboost_context 1.74, and the same with endbr64.
const Code kFiber = {0x55, 0xff, 0xe3, 0x48, 0x31, 0xff, 0xe8, 0x49, 0xfe, 0xff, 0xff, 0xf4};
const Code kFiberWithEndbr = {0x55, 0xff, 0xe3, 0xf3, 0x0f, 0x1e, 0xfa, 0x48,
                              0x31, 0xff, 0xe8, 0x49, 0xfe, 0xff, 0xff, 0xf4};

TEST_CASE("the entry of a fiber is a root at each of its bytes, wherever it lies") {
  for (const Code& whole : {kFiber, kFiberWithEndbr}) {
    // The window is that of the 16 bytes at 0x1000, and the code begins up to 15 bytes before or after.
    for (size_t begin = 1; begin + whole.size() <= 3 * CodeWindow::kBlock; ++begin) {
      CodeWindow code;
      std::copy(whole.begin(), whole.end(), code.bytes + begin);
      for (size_t offset = 0; offset < CodeWindow::kBlock; ++offset) {
        const size_t at = CodeWindow::kBlock + offset;
        const bool inside = at >= begin && at < begin + whole.size();
        CHECK(unwind::RuleByCode(code, 0x1000 + offset) ==
              Rule{.kind = inside ? RuleKind::kRoot : RuleKind::kNone});
      }
    }
    for (size_t i = 0; i < whole.size(); ++i) {
      Code other = whole;
      other[i] ^= 0x40;
      const bool any = i + 5 >= whole.size() && i + 1 < whole.size();  // The call's distance.
      CHECK((unwind::RuleByCode(At(other), 0x1002).kind == RuleKind::kRoot) == any);
    }
  }
}

TEST_CASE("calls are found by their last byte") {
  const unwind::CallBefore direct = CallOf({0xe8, 0xfb, 0x0f, 0, 0});
  CHECK((direct.kind == CallKind::kDirect && direct.target == 0x1ffb));
  CHECK(CallOf({0xe8, 0xfb, 0xff, 0xff, 0xff}).target == 0xffb);
  for (const Code& indirect : {Code{0xff, 0xd0}, Code{0x41, 0xff, 0xd4}, Code{0xff, 0x53, 0x18},
                               Code{0xff, 0x54, 0x24, 0x08}, Code{0xff, 0x14, 0xc7}, Code{0xff, 0x93, 0, 1, 0, 0},
                               Code{0xff, 0x15, 1, 2, 3, 4}, Code{0xff, 0x94, 0x24, 0, 1, 0, 0}}) {
    CHECK(CallOf(indirect).kind == CallKind::kIndirect);
  }
  for (const Code& other : {Code{}, Code{0x90}, Code{0xff, 0x14}, Code{0xff, 0xe0}, Code{0x41, 0xff, 0xe4},
                            Code{0x0f, 0x1f, 0}, Code{0xff, 0x25, 1, 2, 3, 4}, Code{0xcc, 0xcc, 0xcc}, Code{0xc3}}) {
    CHECK(CallOf(other).kind == CallKind::kNone);
  }
}

TEST_CASE("a jump by memory is one with and without endbr64 and bnd") {
  CHECK(unwind::IsJumpByMemory(At(kEntry), 0x1000));
  CHECK(unwind::IsJumpByMemory(At(kIbtStub), 0x1000));
  CHECK(unwind::IsJumpByMemory(At({0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25}), 0x1000));
  CHECK_FALSE(unwind::IsJumpByMemory(At(kIbtEntry), 0x1000));
  CHECK_FALSE(unwind::IsJumpByMemory(At(kHeader), 0x1000));
  CHECK_FALSE(unwind::IsJumpByMemory(At(kHeader), 0x100f));
}

TEST_CASE("code that sets rbp to 0 says so until it returns") {
  // xor ebp, ebp; pop rdi; call *r9
  const Code clone = {0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1};
  CHECK(unwind::RuleByCode(At(clone), 0x1005) == Rule{.kind = RuleKind::kClearsFp});
  CHECK(unwind::RuleByCode(At(clone), 0x1001) == Rule{.kind = RuleKind::kClearsFp});
  CHECK(unwind::RuleByCode(At(clone), 0x1000) == kNoRule);
  CHECK(unwind::RuleByCode(At({0x90, 0x90, 0xff, 0xd0}, {0x31, 0xed, 0xc3}), 0x1003) == kNoRule);
}

// One function with information at 0x1000 of 0x20 bytes, the next one at 0x1040.
struct WithFunctions {
  WithFunctions() {
    Records records;
    records.Cie();
    records.Fde(0x1000, 0x20);
    records.Fde(0x1040, 0x10);
    file = testing::Module(records);
    cfi.emplace(*elf::Image::Parse(testing::BytesOf(file)));
  }

  std::string file;
  std::optional<unwind::Cfi> cfi;
};

TEST_CASE("the code of an entry point ends where a function has information") {
  WithFunctions module;
  const auto code = [&](uint64_t entry) {
    const unwind::AddressRange range = unwind::EntryCode(*module.cfi, entry);
    return std::pair(range.begin, range.end);
  };
  CHECK(code(0x1020) == std::pair<uint64_t, uint64_t>(0x1020, 0x1040));
  CHECK(code(0x2000) == std::pair<uint64_t, uint64_t>(0x2000, 0x2000 + unwind::kMaxEntryCode));
  CHECK_FALSE(unwind::EntryCode(*module.cfi, 0x1000).Holds(0x1000));
  CHECK_FALSE(unwind::EntryCode(*module.cfi, 0).Holds(0));
}

TEST_CASE("functions are told from their padding") {
  WithFunctions module;
  bool covered = false;
  CHECK(module.cfi->At(0x101f, covered) == BySp(8));
  CHECK(covered);
  CHECK(module.cfi->At(0x1020, covered) == BySp(8));
  CHECK_FALSE(covered);
  CHECK_FALSE(module.cfi->IsCovered(0x1020));
  CHECK(module.cfi->IsCovered(0x1041));
  CHECK(module.cfi->IsFunctionBegin(0x1040));
  CHECK_FALSE(module.cfi->IsFunctionBegin(0x1041));
}

#endif

}  // namespace
}  // namespace perfkit
