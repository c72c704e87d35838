// The words for kinds of branches, those of `perf record -j` and `simpleperf record -j`, and their bits.
#include <array>
#include <string>

#include "absl/strings/str_format.h"
#include "perfkit/sampler_options.h"
#include "src/base/text.h"

namespace perfkit {
namespace {

struct Word {
  std::string_view word;
  uint64_t bit;
};

// Bits of enum perf_branch_sample_type. Some have two words, because the tools differ.
constexpr std::array<Word, 22> kWords = {
    {{"u", 1 << 0},          {"k", 1 << 1},          {"hv", 1 << 2},        {"any", 1 << 3},
     {"any_call", 1 << 4},   {"any_ret", 1 << 5},    {"ind_call", 1 << 6},  {"abort_tx", 1 << 7},
     {"in_tx", 1 << 8},      {"no_tx", 1 << 9},      {"cond", 1 << 10},     {"call_stack", 1 << 11},
     {"stack", 1 << 11},     {"ind_jmp", 1 << 12},   {"call", 1 << 13},     {"no_flags", 1 << 14},
     {"no_cycles", 1 << 15}, {"save_type", 1 << 16}, {"hw_index", 1 << 17}, {"priv", 1 << 18},
     {"counter", 1 << 19},   {"any_return", 1 << 5}}};

constexpr uint64_t kWho = 7;  // u, k, hv: the privilege levels.
constexpr uint64_t kAny = 1 << 3;

uint64_t BitOf(std::string_view word) {
  for (const Word& known : kWords) {
    if (known.word == word) return known.bit;
  }
  return 0;
}

std::string AllWords() {
  std::string all;
  for (const Word& known : kWords) all += absl::StrFormat("%s%s", all.empty() ? "" : ", ", known.word);
  return all;
}

}  // namespace

absl::StatusOr<BranchFilter> BranchFilter::Parse(std::string_view words) {
  BranchFilter filter;
  std::string wrong;
  base::ForEachPiece(words, ',', [&](std::string_view piece) {
    const uint64_t bit = BitOf(base::Trim(piece));
    if (bit == 0 && wrong.empty()) wrong = absl::StrFormat("'%s'", base::Trim(piece));
    filter.bits |= bit;
  });
  if (words.empty() || words.back() == ',') wrong = "an empty word";
  if (!wrong.empty()) {
    return absl::Status(
        absl::StatusCode::kInvalidArgument,
        absl::StrFormat("branch filter: %s is not a kind of branch. Remedy: one or more of %s", wrong, AllWords()));
  }
  // As perf does: privilege levels alone mean all of their branches.
  if ((filter.bits & ~kWho) == 0) filter.bits |= kAny;
  return filter;
}

}  // namespace perfkit
