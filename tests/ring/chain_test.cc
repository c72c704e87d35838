// Call chains split at their marks, and branch entries taken apart bit by bit.
#include <linux/perf_event.h>

#include <catch2/catch.hpp>

#include "perfkit/sample.h"
#include "tests/support/record_builder.h"

namespace perfkit {
namespace {

struct Part {
  ChainContext context;
  std::vector<uint64_t> pcs;
  friend bool operator==(const Part&, const Part&) = default;
};

std::vector<Part> Split(const std::vector<uint64_t>& words) {
  const CallChain chain(Words(reinterpret_cast<const std::byte*>(words.data()), words.size()));
  std::vector<Part> parts;
  for (const ChainPart& part : chain) {
    parts.push_back({part.context, {part.pcs.begin(), part.pcs.end()}});
  }
  return parts;
}

constexpr uint64_t Mark(int64_t context) { return static_cast<uint64_t>(context); }

TEST_CASE("a chain is split at its marks", "[chain]") {
  CHECK(Split({}).empty());
  CHECK(Split({1, 2}) == std::vector<Part>{{ChainContext::kNone, {1, 2}}});
  CHECK(Split({Mark(-128), 10, 11, Mark(-512), 1, 2}) ==
        std::vector<Part>{{ChainContext::kKernel, {10, 11}}, {ChainContext::kUser, {1, 2}}});
  CHECK(Split({5, Mark(-512)}) == std::vector<Part>{{ChainContext::kNone, {5}}, {ChainContext::kUser, {}}});
  CHECK(Split({Mark(-128), 10, Mark(-640), 77}) ==
        std::vector<Part>{{ChainContext::kKernel, {10}}, {ChainContext::kUserDeferred, {77}}});
  CHECK(Split({Mark(-32), 1, Mark(-128), 2, Mark(-512), 3, Mark(-640), 4, Mark(-2048), 5, Mark(-2176), 6, Mark(-2560),
               7}) == std::vector<Part>{{ChainContext::kHypervisor, {1}},
                                        {ChainContext::kKernel, {2}},
                                        {ChainContext::kUser, {3}},
                                        {ChainContext::kUserDeferred, {4}},
                                        {ChainContext::kGuest, {5}},
                                        {ChainContext::kGuestKernel, {6}},
                                        {ChainContext::kGuestUser, {7}}});
}

TEST_CASE("what follows a mark that does not lead forward is unknown", "[chain][corrupt]") {
  CHECK(Split({Mark(-512), 1, Mark(-128), 2, Mark(-512), 3}) ==
        std::vector<Part>{{ChainContext::kUser, {1}}, {ChainContext::kUnknown, {2}}, {ChainContext::kUnknown, {3}}});
  CHECK(Split({Mark(-512), Mark(-4095), Mark(-1), 3}) ==
        std::vector<Part>{{ChainContext::kUser, {}}, {ChainContext::kUnknown, {}}, {ChainContext::kUnknown, {3}}});
}

// A later kernel may have further contexts, before and between those of today.
TEST_CASE("no mark is ever a pc, and one that is not known hides nothing", "[chain]") {
  for (uint64_t word = Mark(-4095); word != 0; ++word) {
    const std::vector<Part> parts = Split({Mark(-128), 10, word, 11, Mark(-2560), 1});
    REQUIRE(parts.size() >= 2);
    CHECK(parts[0] == Part{ChainContext::kKernel, {10}});
    bool user = false;
    for (const Part& part : parts) {
      for (const uint64_t pc : part.pcs) CHECK(pc < Mark(-4095));
      user = user || part == Part{ChainContext::kGuestUser, {1}};
    }
    CHECK((user || word == Mark(-2560)));
  }
}

// arm64: a leaf has no frame record for the kernel to follow.
TEST_CASE("the link register has the leaf's caller, unless the chain has it", "[chain]") {
  const uint64_t words[] = {0x1000, 0x2000, 0x3000};
  const Words pcs(reinterpret_cast<const std::byte*>(words), 3);
  CHECK(detail::LeafCaller(pcs, 0x1800) == 0x1800);
  CHECK(detail::LeafCaller(pcs, 0x3000) == 0x3000);  // recursion: only the next one can be the same
  CHECK_FALSE(detail::LeafCaller(pcs, 0x2000));
  CHECK_FALSE(detail::LeafCaller(pcs, 0));
  CHECK_FALSE(detail::LeafCaller(Words(), 0x1800));
  CHECK(detail::LeafCaller(pcs.subspan(0, 1), 0x2000) == 0x2000);
  // Signed, as code with pointer authentication has it.
  CHECK(detail::LeafCaller(pcs, 0x0035'0000'0000'1800) == 0x1800);
  CHECK_FALSE(detail::LeafCaller(pcs, 0xab35'0000'0000'2000));
}

TEST_CASE("a sample has the leaf's caller where the machine has such a register", "[chain]") {
  using testing::SampleValues;
  constexpr uint64_t kLinkValue = 1030;  // BuildSample
  const auto leaf_caller = [](const AttrBits& bits, const SampleValues& values) {
    const std::string bytes = testing::BuildSample(bits, values);
    const RawRecord record = testing::AsRecord(bytes);
    const SampleLayout layout(bits);
    return Sample::Parse(record, layout)->leaf_caller();
  };
  AttrBits bits{.sample_type = kSampleIp | kSampleCallchain | kSampleRegsUser, .regs_user = uint64_t{1} << 30};
  if (!detail::kLinkRegister) {
    CHECK_FALSE(leaf_caller(bits, {}));
    return;
  }
  CHECK(leaf_caller(bits, {}) == kLinkValue);
  CHECK_FALSE(leaf_caller(bits, {.user_abi = 0}));                  // a kernel thread's
  CHECK_FALSE(leaf_caller(bits, {.user_abi = 1}));                  // a 32-bit program's
  CHECK_FALSE(leaf_caller(bits, {.chain = {~uint64_t{127}, 10}}));  // of the kernel only
  CHECK_FALSE(leaf_caller(bits, {.chain = {~uint64_t{511}, 0x1000, kLinkValue}}));
  bits.regs_user = 1;
  CHECK_FALSE(leaf_caller(bits, {}));
  bits.sample_type = kSampleIp | kSampleRegsUser;
  bits.regs_user = uint64_t{1} << 30;
  CHECK_FALSE(leaf_caller(bits, {}));
}

TEST_CASE("a part is found by its context", "[chain]") {
  const uint64_t words[] = {Mark(-128), 10, Mark(-512), 1, 2};
  const CallChain chain(Words(reinterpret_cast<const std::byte*>(words), 5));
  CHECK(chain.part(ChainContext::kUser).size() == 2);
  CHECK(chain.part(ChainContext::kUser)[0] == 1);
  CHECK(chain.part(ChainContext::kKernel).size() == 1);
  CHECK(chain.part(ChainContext::kGuest).empty());
  CHECK(chain.words().size() == 5);
}

// Our words for the kernel's, where the build machine's header has them.
static_assert(Mark(-32) == PERF_CONTEXT_HV && Mark(-128) == PERF_CONTEXT_KERNEL && Mark(-512) == PERF_CONTEXT_USER);
static_assert(Mark(-2048) == PERF_CONTEXT_GUEST && Mark(-2176) == PERF_CONTEXT_GUEST_KERNEL);
static_assert(Mark(-2560) == PERF_CONTEXT_GUEST_USER && Mark(-4095) == PERF_CONTEXT_MAX);

TEST_CASE("a branch entry is the kernel's perf_branch_entry", "[branch]") {
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t flags = uint64_t{1} << bit;
    perf_branch_entry theirs{};
    memcpy(reinterpret_cast<char*>(&theirs) + 16, &flags, 8);
    const Branch ours{.flags = flags};
    INFO("bit " << bit);
    CHECK(ours.mispredicted() == (theirs.mispred != 0));
    CHECK(ours.predicted() == (theirs.predicted != 0));
    CHECK(ours.in_transaction() == (theirs.in_tx != 0));
    CHECK(ours.transaction_abort() == (theirs.abort != 0));
    CHECK(ours.cycles() == theirs.cycles);
    CHECK(ours.type() == theirs.type);
    CHECK((ours.speculation() | ours.new_type() | ours.privilege()) == (bit < 24 || bit > 32
                                                                            ? 0
                                                                            : 1 << (bit < 26   ? bit - 24
                                                                                    : bit < 30 ? bit - 26
                                                                                               : bit - 30)));
  }
}

}  // namespace
}  // namespace perfkit
