// Names of data sources and branch types, held to the kernel's header.
#include "perfkit/data_source.h"

#include <linux/perf_event.h>

#include <catch2/catch.hpp>

namespace perfkit {
namespace {

template <class Fill>
DataSource Made(Fill&& fill) {
  perf_mem_data_src source{};
  fill(source);
  return {.bits = source.val};
}

TEST_CASE("a data source is the kernel's perf_mem_data_src", "[data_source]") {
  const DataSource hit = Made([](perf_mem_data_src& source) {
    source.mem_op = PERF_MEM_OP_LOAD;
    source.mem_lvl = PERF_MEM_LVL_HIT | PERF_MEM_LVL_L3;
    source.mem_snoop = PERF_MEM_SNOOP_HITM;
    source.mem_lock = PERF_MEM_LOCK_LOCKED;
    source.mem_dtlb = PERF_MEM_TLB_HIT | PERF_MEM_TLB_L1 | PERF_MEM_TLB_L2;
  });
  CHECK((hit.is_load() && !hit.is_store() && hit.is_locked() && !hit.is_remote()));
  CHECK(hit.operation() == "LOAD");
  CHECK(hit.level() == "L3 hit");
  CHECK(hit.snoop() == "HitM");
  CHECK(hit.tlb() == "L1|L2 hit");
  CHECK(hit.blocked() == "N/A");

  const DataSource remote = Made([](perf_mem_data_src& source) {
    source.mem_op = PERF_MEM_OP_STORE;
    source.mem_lvl = PERF_MEM_LVL_HIT;
    source.mem_lvl_num = PERF_MEM_LVLNUM_RAM;
    source.mem_remote = PERF_MEM_REMOTE_REMOTE;
    source.mem_snoopx = PERF_MEM_SNOOPX_PEER;
    source.mem_blk = PERF_MEM_BLK_ADDR;
  });
  CHECK((remote.is_store() && remote.is_remote() && !remote.is_locked()));
  CHECK(remote.level() == "Remote RAM hit");
  CHECK(remote.snoop() == "Peer");
  CHECK(remote.tlb() == "N/A");
  CHECK(remote.blocked() == "Addr");
}

TEST_CASE("levels have perf's names, also those that are numbers only", "[data_source]") {
  const auto level = [](uint64_t bits, uint64_t number) {
    return Made([&](perf_mem_data_src& source) {
             source.mem_lvl = PERF_MEM_LVL_HIT | bits;
             source.mem_lvl_num = number;
           })
        .level();
  };
  CHECK(level(PERF_MEM_LVL_REM_RAM1, 0) == "Remote RAM (1 hop) hit");
  CHECK(level(PERF_MEM_LVL_REM_CCE1, 0) == "Remote Cache (1 hop) hit");
  CHECK(level(PERF_MEM_LVL_UNC, 0) == "Uncached hit");
  // Newer than the header of some distributions: PERF_MEM_LVLNUM_MSC and PERF_MEM_LVLNUM_UNC.
  CHECK(level(0, 6) == "Memory-side Cache hit");
  CHECK(level(0, 8) == "Uncached hit");
  // A number without a meaning: the bits count.
  CHECK(level(PERF_MEM_LVL_L2, 7) == "L2 hit");
}

TEST_CASE("what the hardware does not say has no name, and no bits are beyond the names", "[data_source]") {
  const DataSource none = Made([](perf_mem_data_src& source) {
    source.mem_op = PERF_MEM_OP_NA;
    source.mem_lvl = PERF_MEM_LVL_NA;
    source.mem_lvl_num = PERF_MEM_LVLNUM_NA;
    source.mem_snoop = PERF_MEM_SNOOP_NA;
    source.mem_dtlb = PERF_MEM_TLB_NA;
  });
  for (const std::string& text : {none.operation(), none.level(), none.snoop(), none.tlb(), none.blocked()}) {
    CHECK(text == "N/A");
  }
  for (unsigned bit = 0; bit < 64; ++bit) {
    const DataSource one{.bits = uint64_t{1} << bit};
    for (const std::string& text : {one.operation(), one.level(), one.snoop(), one.tlb(), one.blocked()}) {
      CHECK_FALSE(text.empty());
    }
  }
}

TEST_CASE("weights have three parts, and branch types their names", "[data_source]") {
  perf_sample_weight weight{};
  weight.var1_dw = 100'000, weight.var2_w = 200, weight.var3_w = 300;
  const WeightParts parts = WeightParts::Of(weight.full);
  CHECK((parts.first == 100'000 && parts.second == 200 && parts.third == 300));
  CHECK(BranchTypeName(PERF_BR_COND) == "COND");
  CHECK(BranchTypeName(PERF_BR_RET) == "RET");
  CHECK(BranchTypeName(PERF_BR_NO_TX) == "NO_TX");
  CHECK(BranchTypeName(PERF_BR_EXTEND_ABI, PERF_BR_NEW_FAULT_DATA) == "FAULT_DATA");
  CHECK(BranchTypeName(PERF_BR_UNKNOWN).empty());
  for (unsigned type = 0; type < 256; ++type) {
    CHECK(BranchTypeName(static_cast<uint8_t>(type), 255).size() < 16);
  }
}

}  // namespace
}  // namespace perfkit
