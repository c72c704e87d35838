// Stacks of kernel and user frames: of this thread, in system calls, and of samples written by hand.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "perfkit/kernel_frames.h"
#include "perfkit/sampler.h"
#include "perfkit/unwinder.h"
#include "src/sys/rights.h"
#include "tests/support/record_builder.h"
#include "tests/support/temp_folder.h"

namespace perfkit {
namespace {

constexpr uint64_t kOfKernel = -uint64_t{128}, kOfUser = -uint64_t{512}, kCode = 0xffff'8000'0000'0000;
constexpr AttrBits kJoined{
    .sample_type = kSampleIp | kSampleTid | kSampleCallchain | kSampleRegsUser | kSampleStackUser, .regs_user = 0xff};

// Writes to fresh pages by a system call: each is a fault in the kernel.
[[gnu::noinline]] void FaultInCall(size_t pages) {
  constexpr size_t kPage = 4096;
  void* const memory = mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  madvise(memory, pages * kPage, MADV_NOHUGEPAGE);
  const int zeros = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  for (size_t i = 0; i < pages; ++i) CHECK(read(zeros, static_cast<char*>(memory) + i * kPage, kPage) == kPage);
  close(zeros);
  munmap(memory, pages * kPage);
}

TEST_CASE("a joined stack is the kernel's frames, then those of user code, and nothing twice", "[joined]") {
  const bool permitted = sys::ReadRights().may_count_kernel();
  const SamplerOptions options{.events = {{.event = "page-faults", .rate = Period{1}}},
                               .stack = CallStack::UserDump(8 << 10)};
  absl::StatusOr<Sampler> sampler = Sampler::Open(options);
  REQUIRE(sampler.status() == absl::OkStatus());
  REQUIRE(sampler->Start() == absl::OkStatus());
  FaultInCall(16);
  CHECK(sampler->Stop() == absl::OkStatus());
  Unwinder unwinder;
  REQUIRE(unwinder.AddProcess(getpid()).ok());
  size_t in_kernel = 0;
  sampler->Drain([&](const SamplerRecord& record) {
    Dispatch(record, sampler->layout(), [&](const Sample& sample) {
      std::array<StackFrame, 256> frames, user;
      const JoinedStack joined = unwinder.UnwindWithKernel(sample, frames);
      const KernelFrames kernel(sample);
      const UnwoundStack alone = unwinder.Unwind(sample, user);
      CHECK(joined.kernel_frames == kernel.size());
      CHECK(joined.user == alone);
      CHECK(joined.frames() == kernel.size() + alone.frames);
      for (size_t i = 0; i < joined.frames(); ++i) {
        CHECK(frames[i] == (i < kernel.size() ? kernel[i] : user[i - kernel.size()]));
        CHECK(frames[i].is_kernel == (i < kernel.size()));
        CHECK((frames[i].pc >> 63 != 0) == frames[i].is_kernel);
      }
      CHECK_FALSE(joined.kernel_cut);
      CHECK(joined.complete() == alone.complete());
      for (size_t room = 0; room <= joined.frames(); ++room) {
        std::array<StackFrame, 256> fewer{};
        const JoinedStack cut = unwinder.UnwindWithKernel(sample, std::span(fewer).first(room));
        CHECK(cut.frames() == room);
        CHECK(std::equal(fewer.begin(), fewer.begin() + room, frames.begin()));
        CHECK(fewer[room] == StackFrame());
        CHECK(cut.kernel_cut == (room < kernel.size()));
        CHECK(cut.user.end == (room < joined.frames() ? StackEnd::kLimit : alone.end));
      }
      in_kernel += kernel.size() > 2 && alone.frames > 1 ? 1 : 0;
    });
  });
  const uint64_t lost = sampler->stats().events[0].lost;  // A sanitizer's own faults may fill the ring.
  CHECK((in_kernel != 0) == permitted);
  if (permitted) CHECK(in_kernel + lost >= 16);
}

// Unwinds what has no registers, so no frame of user code.
JoinedStack Join(Unwinder& unwinder, CpuMode mode, std::vector<uint64_t> chain, std::span<StackFrame> frames) {
  testing::SampleValues values{.ip = kCode, .misc = static_cast<uint16_t>(mode)};
  values.chain = std::move(chain);
  values.user_abi = 0;
  values.stack.clear();
  const std::string bytes = testing::BuildSample(kJoined, values);
  const SampleLayout layout(kJoined);
  const auto sample = Sample::Parse(testing::AsRecord(bytes), layout);
  REQUIRE(sample.has_value());
  return unwinder.UnwindWithKernel(*sample, frames);
}

TEST_CASE("callers in the kernel that may be missing are told", "[joined]") {
  const testing::TempFolder proc;
  proc.Write("/sys/kernel/perf_event_max_stack", "4\n");
  Unwinder unwinder({.proc = proc.path()});
  std::array<StackFrame, 8> frames;
  const auto is_cut = [&](CpuMode mode, const std::vector<uint64_t>& chain, size_t room = 8) {
    const JoinedStack stack = Join(unwinder, mode, chain, std::span(frames).first(room));
    CHECK(stack.user.frames == 0);
    CHECK_FALSE(stack.complete());  // There is no frame of user code.
    return stack.kernel_cut;
  };
  const std::vector<uint64_t> three{kOfKernel, kCode, kCode, kCode}, four{kOfKernel, kCode, kCode, kCode, kCode};
  CHECK_FALSE(is_cut(CpuMode::kKernel, three));
  CHECK(is_cut(CpuMode::kKernel, four));
  CHECK_FALSE(is_cut(CpuMode::kKernel, three, 3));
  CHECK(is_cut(CpuMode::kKernel, three, 2));
  CHECK(is_cut(CpuMode::kKernel, three, 0));
  CHECK(is_cut(CpuMode::kKernel, {}));  // Not asked for, or not permitted.
  CHECK_FALSE(is_cut(CpuMode::kUser, {}));
  CHECK_FALSE(is_cut(CpuMode::kUser, four));
  CHECK(JoinedStack{.user = {.end = StackEnd::kRoot}}.complete());
  CHECK_FALSE(JoinedStack{.kernel_cut = true, .user = {.end = StackEnd::kRoot}}.complete());
}

TEST_CASE("any chain gives frames of the kernel alone, and no more than there is room for", "[joined][corrupt]") {
  std::mt19937_64 random(11);
  Unwinder unwinder;
  constexpr std::array<uint64_t, 5> kMarks{kOfKernel, kOfUser, -uint64_t{32}, -uint64_t{2048}, -uint64_t{4095}};
  for (int i = 0; i < 5'000; ++i) {
    std::vector<uint64_t> words;
    for (size_t left = random() % 300; left > 0; --left) {
      words.push_back(random() % 8 == 0 ? kMarks[random() % kMarks.size()] : random());
    }
    if (random() % 2 == 0) words.insert(words.begin(), kOfKernel);
    const Words view(reinterpret_cast<const std::byte*>(words.data()), words.size());
    const size_t pcs = CallChain(view).part(ChainContext::kKernel).size();
    std::vector<StackFrame> frames(random() % 200);
    const JoinedStack stack = Join(unwinder, CpuMode::kKernel, words, frames);
    CHECK(stack.kernel_frames == std::min(frames.size(), std::max<size_t>(pcs, 1)));
    CHECK(stack.user.frames == 0);
    const auto in_kernel = [](const StackFrame& frame) { return frame.is_kernel; };
    CHECK(std::all_of(frames.begin(), frames.begin() + stack.kernel_frames, in_kernel));
    CHECK(Join(unwinder, CpuMode::kUser, words, frames).kernel_frames == 0);
  }
}

}  // namespace
}  // namespace perfkit
