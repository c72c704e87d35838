// Rules and whole rows equal libdw's, at each pc of real libraries.
#include "tests/unwind/dwarf/cfi/oracle.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "src/base/mix.h"
#include "src/unwind/dwarf/cfi/cfi.h"
#include "src/unwind/dwarf/live/frozen_table.h"
#include "tests/elf/elf_builder.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

using unwind::Rule;
using unwind::RuleKind;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The result of a comparison.
struct RuleAgreement {
  uint64_t pcs = 0;      // That libdw has information for.
  uint64_t wrong = 0;    // Those of them with a different rule or row.
  uint64_t padding = 0;  // Without information from libdw, at most 15 bytes after some with it.
  uint64_t made_up = 0;  // Others that only perfkit has information for.
  uint64_t frozen = 0;   // With a different rule in the frozen table.
  uint64_t slow = 0;     // Whose rule is kSlow.
  uint64_t changes = 0;  // Changes of the rule.
  std::string first;     // The first difference.

  void Wrong(uint64_t pc, const std::string& what) {
    if (wrong++ > 0) return;
    char text[40];
    snprintf(text, sizeof(text), "%#llx: ", static_cast<unsigned long long>(pc));
    first = text + what;
  }
};

// Compares all results for one pc.
void Compare(const testing::Oracle& oracle, unwind::Cfi& cfi, uint64_t pc, bool whole, RuleAgreement& agreement) {
  const Rule rule = cfi.At(pc);
  const testing::Oracle::Row row = oracle.At(pc);
  if (row == nullptr) return;
  ++agreement.pcs;
  agreement.slow += rule.kind == RuleKind::kSlow;
  const Rule expected = oracle.RuleFromRow(row.get());
  if (rule != expected) {
    agreement.Wrong(pc, "kind " + std::to_string(int(rule.kind)) + ", libdw: " + std::to_string(int(expected.kind)));
  }
  unwind::CfiRow full;
  if (!whole) return;
  const std::string different = cfi.Full(pc, full) ? oracle.Differs(row.get(), full) : "no row";
  if (!different.empty()) agreement.Wrong(pc, different);
}

// The compared code: each `step`th pc of one window of 2 KiB in `one_in`, always the same ones.
struct Coverage {
  static constexpr uint64_t kWindow = 2048;
  uint64_t step = 1, one_in = 1;

  bool Has(uint64_t pc) const { return (base::Mix(pc / kWindow + 1) >> 32) % one_in == 0; }
  static uint64_t EndOfWindow(uint64_t pc) { return (pc / kWindow + 1) * kWindow; }
};

// From the first to the last pc that either may know; whole rows where rules change, and at some others.
RuleAgreement CompareAll(const std::string& image, Coverage coverage) {
  const testing::Oracle oracle(image);
  REQUIRE(oracle.ok());
  unwind::Cfi cfi(*elf::Image::Parse(testing::BytesOf(image)));
  const unwind::FrozenTable frozen(cfi);
  uint64_t begin = UINT64_MAX, end = 0, covered = 0;
  for (const unwind::RuleChange& change : cfi.Changes()) {
    begin = std::min(begin, change.begin);
    end = std::max(end, change.begin);
  }
  RuleAgreement agreement;
  Rule last;
  for (uint64_t pc = begin; pc < end + 32; pc += coverage.step) {
    if (!coverage.Has(pc)) {
      covered = pc = Coverage::EndOfWindow(pc) - coverage.step;  // padding that begins before it is no fault
      continue;
    }
    const Rule rule = cfi.At(pc);
    agreement.frozen += frozen.At(pc) != rule;
    agreement.changes += rule != last;
    const uint64_t known = agreement.pcs;
    Compare(oracle, cfi, pc, rule != last || pc % 64 == 0, agreement);
    if (agreement.pcs > known) {
      covered = pc;
    } else if (rule.kind != RuleKind::kNone) {
      ++(pc - covered < 15 + coverage.step ? agreement.padding : agreement.made_up);
    }
    last = rule;
  }
  return agreement;
}

void CheckAgreement(const std::string& path, const std::string& image, Coverage coverage, uint64_t min_pcs) {
  const RuleAgreement agreement = CompareAll(image, coverage);
  INFO(path << ": first difference: " << agreement.first);
  CHECK(agreement.wrong == 0);
  CHECK(agreement.made_up == 0);
  CHECK(agreement.frozen == 0);
  CHECK(agreement.pcs > min_pcs);
  CHECK(agreement.slow <= agreement.pcs / 1000);
  std::printf("%s: %llu pcs and %llu changes of rule as libdw says, %llu in padding, %llu slow\n", path.c_str(),
              static_cast<unsigned long long>(agreement.pcs), static_cast<unsigned long long>(agreement.changes),
              static_cast<unsigned long long>(agreement.padding), static_cast<unsigned long long>(agreement.slow));
}

void CheckAgreement(const std::string& path, Coverage coverage, uint64_t min_pcs) {
  CheckAgreement(path, ReadAll(path), coverage, min_pcs / coverage.one_in);
}

void CheckLibraries(uint64_t one_in) {
  for (const char* const name : {"libc.so.6", "libstdc++.so.6"}) {
    const std::string path = testing::PathOfLibrary(name);
    REQUIRE(!path.empty());
    CheckAgreement(path, {.step = 1, .one_in = one_in}, 800'000);
  }
}

void CheckArmLibraries(uint64_t one_in) {
  for (const char* const name : {"libc.so.6", "libstdc++.so.6"}) {
    const std::string path = std::string("/usr/aarch64-linux-gnu/lib/") + name;
    if (!std::filesystem::exists(path)) SKIP_TEST("no " + path + ": install g++-aarch64-linux-gnu");
    CheckAgreement(path, {.step = 4, .one_in = one_in}, 150'000);
  }
}

TEST_CASE("pcs of the C and C++ libraries have the rule that libdw gives them") { CheckLibraries(12); }
TEST_CASE("every pc of the C and C++ libraries has the rule that libdw gives it", "[.heavy]") { CheckLibraries(1); }

TEST_CASE("instructions of aarch64's C and C++ libraries have the rule that libdw gives them") { CheckArmLibraries(8); }
TEST_CASE("every instruction of aarch64's C and C++ libraries has the rule that libdw gives it", "[.heavy]") {
  CheckArmLibraries(1);
}

// Returns what the kernel maps into each process, which is in no file; "" if it maps nothing.
std::string Vdso() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    if (line.find("[vdso]") == std::string::npos || sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2) continue;
    return std::string(reinterpret_cast<const char*>(begin), end - begin);
  }
  return "";
}

TEST_CASE("every pc of the kernel's own code in the process has the rule that libdw gives it") {
  const std::string image = Vdso();
  if (image.empty()) SKIP_TEST("the kernel maps no vDSO here");
  CheckAgreement("[vdso]", image, Coverage(), 100);
}

TEST_CASE("every pc of large programs has the rule that libdw gives it", "[.heavy]") {
  int seen = 0;
  for (const char* const path :
       {"/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus", "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1"}) {
    if (!std::filesystem::exists(path)) continue;
    CheckAgreement(path, Coverage(), 10'000'000);
    ++seen;
  }
  if (seen == 0) SKIP_TEST("neither GCC's cc1plus nor libLLVM is where Debian has them");
}

}  // namespace
}  // namespace perfkit
