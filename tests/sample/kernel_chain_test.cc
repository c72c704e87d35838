// The kernel's callers, beside each kind of stack.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "perfkit/kernel_frames.h"
#include "src/sample/plan.h"
#include "src/sys/rights.h"
#include "tests/sample/live_support.h"
#include "tests/sample/support.h"

namespace perfkit {
namespace {

using sample::Plan;
using sample::SamplingLevel;

const std::vector<CallStack>& BesideKernel() {
  static const std::vector<CallStack> all{CallStack::UserDump(1024), CallStack::Live(testing::FlatWalker::Make),
                                          CallStack::UserDump(1024, {.every = 4, .bytes = 2048})};
  return all;
}

SamplerOptions OptionsWith(const CallStack& stack, std::string event = "cpu-clock") {
  return {.events = {{.event = EventSpec(std::move(event)), .rate = Period{1'000'000}}}, .stack = stack};
}

bool HasChain(const SamplerOptions& options) {
  const absl::StatusOr<Plan> plan = Plan::Make(options, Target::ThisThread());
  REQUIRE(plan.status() == absl::OkStatus());
  const bool has_chain = plan->layout().has(Field::kCallchain);
  for (uint32_t i = 0; i < plan->events().size(); ++i) {
    const auto attr = plan->EventRequest(i, 0, plan->FullLevel()).attr;
    CHECK(((attr.sample_type & kSampleCallchain) != 0) == has_chain);
    CHECK(attr.exclude_callchain_user == has_chain);
    CHECK(attr.exclude_callchain_kernel == (has_chain && !plan->events()[i].stack));
    // Without the stack, at the lowest levels of the budget, there is no chain either.
    const auto least = plan->EventRequest(i, 0, SamplingLevel{.stack = 0}).attr;
    CHECK((least.exclude_callchain_user && least.exclude_callchain_kernel) == has_chain);
  }
  return has_chain;
}

TEST_CASE("dumped and live stacks have the kernel's callers where there can be any", "[kernel_chain]") {
  const bool permitted = sys::ReadRights().may_count_kernel();
  for (const CallStack& stack : BesideKernel()) {
    CHECK(HasChain(OptionsWith(stack)) == permitted);
    CHECK_FALSE(HasChain(OptionsWith(stack, "cpu-clock:u")));
    CallStack without = stack;
    without.kernel = false;
    CHECK_FALSE(HasChain(OptionsWith(without)));
    SamplerOptions options = OptionsWith(stack);
    options.user_only = true;
    CHECK_FALSE(HasChain(options));
    options = OptionsWith(stack, "task-clock:u");
    if (stack.full.every != 0) continue;
    options.events.push_back({.event = "cpu-clock", .rate = Period{1'000'000}});
    CHECK(HasChain(options) == permitted);
    options.events.back().stack = false;
    CHECK_FALSE(HasChain(options));
  }
  CHECK_FALSE(HasChain(OptionsWith(CallStack::None())));
}

constexpr size_t kPage = 4096, kPages = 64;

// What was found in the kernel for each page of memory that a system call was the first to write to.
struct Chains {
  std::map<uint64_t, std::vector<uint64_t>> by_page;
  size_t user_pcs = 0, others = 0;
  uint64_t cost_ns = 0;  // What the samples have cost the kernel, beside that of samples in user code.
};

Chains ChainsOf(const CallStack& stack) {
  SamplerOptions options{.events = {{.event = "page-faults", .rate = Period{1}}}, .stack = stack};
  options.fields = kSampleAddr;
  absl::StatusOr<Sampler> sampler = Sampler::Open(options);
  REQUIRE(sampler.status() == absl::OkStatus());
  void* const memory = mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  madvise(memory, kPages * kPage, MADV_NOHUGEPAGE);
  const int zeros = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  REQUIRE(zeros >= 0);
  REQUIRE(sampler->Start() == absl::OkStatus());
  for (size_t done = 0; done < kPages * kPage;) {
    const ssize_t now = read(zeros, static_cast<char*>(memory) + done, kPages * kPage - done);
    if (now > 0) done += static_cast<size_t>(now);
  }
  CHECK(sampler->Stop() == absl::OkStatus());
  const auto begin = reinterpret_cast<uint64_t>(memory);
  Chains chains;
  testing::ForEachSample(*sampler, [&](const Sample& sample, const SamplerRecord&) {
    const KernelFrames kernel(sample);
    chains.user_pcs += sample.chain().part(ChainContext::kUser).size();
    if (kernel.empty()) chains.others += sample.chain().words().size();
    const uint64_t page = (*sample.address() - begin) / kPage;
    if (kernel.empty() || *sample.address() < begin || page >= kPages) return;
    std::vector<uint64_t>& pcs = chains.by_page[page];
    if (!pcs.empty()) return;
    for (size_t i = 0; i < kernel.size(); ++i) pcs.push_back(kernel[i].pc);
  });
  close(zeros);
  munmap(memory, kPages * kPage);
  const SamplerStats stats = sampler->stats();
  const Plan plan = Plan::Make(options, Target::ThisThread()).value();
  chains.cost_ns = stats.kernel_cpu_ns - stats.events[0].delivered * plan.SampleCostNs(0, plan.FullLevel());
  return chains;
}

TEST_CASE("the kernel's callers are in the cost of samples", "[kernel_chain][law]") {
  CallStack stack = CallStack::UserDump(1024);
  const bool permitted = sys::ReadRights().may_count_kernel();
  const Chains with = ChainsOf(stack);
  CHECK(with.cost_ns >= (permitted ? kPages * Plan::kKernelChainNs : 0));
  stack.kernel = false;
  CHECK(ChainsOf(stack).cost_ns == 0);
  CHECK(ChainsOf(CallStack::FramePointers()).cost_ns == 0);  // It has that of as many frames as it may have.
}

TEST_CASE("the kernel's callers are the same, whichever way the user's are found", "[kernel_chain][law]") {
  if (!sys::ReadRights().may_count_kernel()) {
    CHECK(ChainsOf(CallStack::UserDump(1024)).by_page.empty());
    return;
  }
  const Chains expected = ChainsOf(CallStack::FramePointers());
  REQUIRE(expected.by_page.size() == kPages);
  for (const auto& [page, pcs] : expected.by_page) CHECK(pcs.size() >= 4);  // The fault, the read, and their callers.
  CHECK(expected.user_pcs > 0);
  for (const CallStack& stack : {CallStack::UserDump(1024), CallStack::Live(testing::FlatWalker::Make)}) {
    const Chains found = ChainsOf(stack);
    CHECK(found.by_page == expected.by_page);
    CHECK(found.user_pcs == 0);
    CHECK(found.others == 0);  // Samples in user code have no chain.
    CallStack without = stack;
    without.kernel = false;
    for (const auto& [page, pcs] : ChainsOf(without).by_page) CHECK(pcs.size() == 1);
  }
  CallStack pointers = CallStack::FramePointers();
  pointers.kernel = false;
  const Chains found = ChainsOf(pointers);
  for (const auto& [page, pcs] : found.by_page) CHECK(pcs.size() == 1);
  CHECK(found.user_pcs > 0);
}

}  // namespace
}  // namespace perfkit
