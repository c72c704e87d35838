// Records that are read without libdw are those that libdw reads, whatever was read before.
#include "src/unwind/dwarf/cfi/cfi_records.h"

#include <catch2/catch.hpp>

#include "tests/unwind/dwarf/cfi/crafted.h"
#include "tests/unwind/dwarf/cfi/oracle.h"

namespace perfkit {
namespace {

using testing::Ops;
using testing::Raw;
using unwind::CfiRecords;
using unwind::Fde;

constexpr uint64_t kAddress = 0x4000;

// A section of these bytes.
class Section {
 public:
  explicit Section(std::string bytes) : bytes_(std::move(bytes)), ident_(testing::ElfBuilder().Build()) {}

  CfiRecords Records() const {
    return CfiRecords(testing::BytesOf(ident_),
                      {.bytes = testing::BytesOf(bytes_), .address = kAddress, .is_eh = true, .header = {}});
  }

 private:
  std::string bytes_, ident_;
};

// libdw reads each FDE whose CIE is not known yet.
bool IsFde(const Section& section, uint64_t offset, bool after_all) {
  CfiRecords records = section.Records();
  Fde fde;
  if (after_all) records.ForEachFde([](uint64_t, const Fde&) {});
  return records.FdeAt(offset, fde);
}

TEST_CASE("a damaged FDE is one for both readers or for none") {
  testing::Records whole;
  whole.Cie(testing::kX86Start, 16, "zR", DW_EH_PE_pcrel | DW_EH_PE_sdata4);
  const size_t at = whole.Fde(0x1000, 0x40, Ops({DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16}));
  const size_t last = whole.Fde(0x2000, 0x40);
  for (const bool after_all : {false, true}) {
    CHECK(IsFde(Section(whole.bytes()), at, after_all));
    CHECK(IsFde(Section(whole.bytes()), last, after_all));
  }
  uint64_t refused = 0;
  for (const uint32_t value : {0u, 1u, 3u, 4u, 11u, 12u, 13u, 0x7fff'ffffu, 0xffff'ffefu, 0xffff'fff0u, ~0u}) {
    for (size_t byte = 0; byte < 20; ++byte) {
      std::string bytes = whole.bytes();
      bytes.replace(at + byte, sizeof(value), Raw(value));
      const Section section(bytes);
      CAPTURE(value, byte);
      const bool by_libdw = IsFde(section, at, false);
      CHECK(IsFde(section, at, true) == by_libdw);
      refused += !by_libdw;
    }
  }
  CHECK(refused > 0);
}

// The CIE lies across the FDE: libdw takes the first record for no FDE, because no CIE can be before it.
TEST_CASE("the first record is no FDE, also if its CIE is known") {
  std::string bytes(264, '\0');
  const auto put = [&](size_t at, const std::string& part) { bytes.replace(at, part.size(), part); };
  put(0, Raw<uint32_t>(200) + Raw<uint32_t>(1) + Raw<uint32_t>(0x0100'0000) + std::string("zR\0\x01", 4));
  put(16, Ops({0x78, 16, 1, DW_EH_PE_pcrel | DW_EH_PE_sdata4}) + testing::kX86Start);
  const size_t at = bytes.size();
  bytes += Raw<uint32_t>(20) + Raw(static_cast<uint32_t>(at + 4 - 3)) + Raw(0x1000) + Raw<uint32_t>(64) +
           std::string(8, '\0') + Raw<uint32_t>(0);
  const Section section(bytes);
  CfiRecords records = section.Records();
  Fde fde;
  CHECK_FALSE(records.FdeAt(0, fde));
  CHECK(records.FdeAt(at, fde));
  CHECK_FALSE(records.FdeAt(0, fde));
}

}  // namespace
}  // namespace perfkit
