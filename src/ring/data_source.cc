// Formats the bit fields of memory samples and branches. Source: include/uapi/linux/perf_event.h, and perf's
// tools/perf/util/mem-events.c and branch.c for the words.
//
// A field has one bit for each answer and one for "not available", so that hardware may give several answers at once:
// they are joined by '|'. Bits that this table does not know are left out.
#include "perfkit/data_source.h"

#include <array>
#include <span>
#include <utility>

namespace perfkit {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 4> kOperations = {"LOAD", "STORE", "PFETCH", "EXEC"};
constexpr std::array<std::string_view, 11> kLevels = {"L1",
                                                      "LFB/MAB",
                                                      "L2",
                                                      "L3",
                                                      "Local RAM",
                                                      "Remote RAM (1 hop)",
                                                      "Remote RAM (2 hops)",
                                                      "Remote Cache (1 hop)",
                                                      "Remote Cache (2 hops)",
                                                      "I/O",
                                                      "Uncached"};
// PERF_MEM_LVLNUM_*; the first one is number 1. Number 7 has no meaning, as of Linux 6.18.
constexpr std::array<std::string_view, 14> kLevelNumbers = {
    "L1",  "L2",        "L3",      "L4",  "L2 MHB", "Memory-side Cache", "", "Uncached", "CXL",
    "I/O", "Any cache", "LFB/MAB", "RAM", "PMEM"};
constexpr std::array<std::string_view, 4> kSnoops = {"None", "Hit", "Miss", "HitM"};
constexpr std::array<std::string_view, 2> kMoreSnoops = {"Fwd", "Peer"};
constexpr std::array<std::string_view, 4> kTlbs = {"L1", "L2", "Walker", "Fault"};
constexpr std::array<std::string_view, 2> kBlocked = {"Data", "Addr"};
constexpr std::array<std::string_view, 15> kBranchTypes = {"",         "COND", "UNCOND",  "IND",    "CALL",
                                                           "IND_CALL", "RET",  "SYSCALL", "SYSRET", "COND_CALL",
                                                           "COND_RET", "ERET", "IRQ",     "SERROR", "NO_TX"};
constexpr std::array<std::string_view, 8> kNewBranchTypes = {"FAULT_ALGN", "FAULT_DATA", "FAULT_INST", "ARCH_1",
                                                             "ARCH_2",     "ARCH_3",     "ARCH_4",     "ARCH_5"};
constexpr uint8_t kExtended = 15;  // PERF_BR_EXTEND_ABI

void Append(std::string& text, std::string_view name) {
  if (!text.empty()) text += '|';
  text += name;
}

// Joins the names of the bits that are set: bit i is names[i].
std::string Join(uint64_t bits, Names names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if ((bits >> i & 1) != 0) Append(text, names[i]);
  }
  return text;
}

std::string OrNone(std::string text) { return text.empty() ? "N/A" : text; }

// Adds the outcome to the text of a level or TLB field, whose lowest bits are N/A, hit and miss.
std::string WithOutcome(std::string text, uint64_t bits) {
  if (text.empty()) return "N/A";
  if ((bits & 2) != 0) text += " hit";
  if ((bits & 4) != 0) text += " miss";
  return text;
}

}  // namespace

// Field(first bit, bits); `>> 1` removes the bit for "not available", `>> 3` also those for hit and miss.
std::string DataSource::operation() const { return OrNone(Join(Field(0, 5) >> 1, kOperations)); }

// The level as a number is newer than the level as bits, and more precise if the hardware sets both.
std::string DataSource::level() const {
  const uint64_t bits_of_level = Field(5, 14), number = Field(33, 4);
  const bool numbered = number != 0 && number <= kLevelNumbers.size() && !kLevelNumbers[number - 1].empty();
  if (!numbered) return WithOutcome(Join(bits_of_level >> 3, kLevels), bits_of_level);
  std::string text(is_remote() ? "Remote " : "");
  text += kLevelNumbers[number - 1];
  return WithOutcome(std::move(text), bits_of_level);
}

std::string DataSource::snoop() const {
  std::string text = Join(Field(19, 5) >> 1, kSnoops);
  const std::string more = Join(Field(38, 2), kMoreSnoops);
  if (!more.empty()) Append(text, more);
  return OrNone(std::move(text));
}

std::string DataSource::tlb() const { return WithOutcome(Join(Field(26, 7) >> 3, kTlbs), Field(26, 7)); }

std::string DataSource::blocked() const { return OrNone(Join(Field(40, 3) >> 1, kBlocked)); }

std::string_view BranchTypeName(uint8_t type, uint8_t new_type) noexcept {
  if (type == kExtended) return new_type < kNewBranchTypes.size() ? kNewBranchTypes[new_type] : "";
  return type < kBranchTypes.size() ? kBranchTypes[type] : "";
}

}  // namespace perfkit
