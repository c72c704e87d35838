// Decodes the words of a sample about memory accesses and branches, with the terms of `perf mem` and `perf script`.
#pragma once

#include "perfkit/detail/library_only.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace perfkit {

// Decodes Sample::data_source: where a memory access found its data (union perf_mem_data_src).
struct DataSource {
  uint64_t bits = 0;

  bool is_load() const noexcept { return Field(0, 5) >> 1 & 1; }
  bool is_store() const noexcept { return Field(0, 5) >> 2 & 1; }
  bool is_locked() const noexcept { return Field(24, 2) >> 1 & 1; }
  bool is_remote() const noexcept { return Field(37, 1) != 0; }

  // These return "N/A" if the hardware does not say; several answers are joined by '|'.
  std::string operation() const;  // "LOAD", "STORE", "PFETCH", "EXEC"
  std::string level() const;      // "L1 hit", "LFB/MAB miss", "Remote RAM (1 hop) hit"
  std::string snoop() const;      // "None", "Hit", "Miss", "HitM", "Fwd", "Peer"
  std::string tlb() const;        // "L1|L2 hit", "Walker miss"
  std::string blocked() const;    // "Data", "Addr"

 private:
  uint64_t Field(unsigned first, unsigned count) const noexcept { return bits >> first & ((uint64_t{1} << count) - 1); }
};

// Sample::weight, with kSampleWeightStruct: three numbers whose meaning depends on the machine. Intel, in cycles:
// latency of the access, latency of the instruction, time between the retirements of the previous instruction and of
// this one.
struct WeightParts {
  uint32_t first = 0;
  uint16_t second = 0, third = 0;

  static constexpr WeightParts Of(uint64_t weight) noexcept {
    return {static_cast<uint32_t>(weight), static_cast<uint16_t>(weight >> 32), static_cast<uint16_t>(weight >> 48)};
  }
};

// Returns Branch::type as perf names it: "COND", "CALL", "RET"; "" if the hardware does not say, or for a newer type.
// `new_type` is Branch::new_type, which is used if the type is PERF_BR_EXTEND_ABI.
std::string_view BranchTypeName(uint8_t type, uint8_t new_type = 0) noexcept;

}  // namespace perfkit
