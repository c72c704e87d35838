// Unwinding, live tables and source lines under faults: a stack is right, or ends early and says why.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "perfkit/dwarf_lines.h"
#include "perfkit/sampler.h"
#include "perfkit/session.h"
#include "perfkit/symbolizer.h"
#include "perfkit/unwinder.h"
#include "tests/support/fault_table.h"
#include "tests/support/record_builder.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::Faults;
using testing::RunFaults;

[[gnu::noinline]] void TouchDeep(testing::FreshPages& memory, int depth) {
  volatile char room[32] = {};
  if (depth == 0) {
    memory.Touch(0, memory.pages());
  } else {
    TouchDeep(memory, depth - 1);
  }
  room[1] = room[0];  // no tail call
}

// A sample of this thread at depth 20, with its dump, and all of its frames.
struct DeepSample {
  SampleLayout layout;
  std::string record;
  std::vector<uint64_t> pcs;
};

std::vector<StackFrame> Unwound(const DeepSample& deep, UnwoundStack& stack) {
  std::vector<StackFrame> frames(64);
  Unwinder unwinder;
  const auto sample = Sample::Parse(testing::AsRecord(deep.record), deep.layout);
  REQUIRE(sample.has_value());
  if (!unwinder.AddProcess(getpid()).ok()) return {};
  stack = unwinder.Unwind(*sample, frames);
  frames.resize(stack.frames);
  return frames;
}

DeepSample TakeDeepSample() {
  SamplerOptions options;
  options.events = {{.event = "page-faults:u", .rate = Period{1}}};
  options.stack = CallStack::UserDump(16 << 10);
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.status() == absl::OkStatus());
  testing::FreshPages memory(1);
  REQUIRE(sampler->Start().ok());
  TouchDeep(memory, 20);
  REQUIRE(sampler->Stop().ok());
  DeepSample deep{.layout = sampler->layout()};
  sampler->Drain([&](const SamplerRecord& record) {
    if (record.type != static_cast<uint32_t>(RecordType::kSample)) return;
    deep.record.assign(reinterpret_cast<const char*>(record.data), record.size);
  });
  UnwoundStack stack;
  for (const StackFrame& frame : Unwound(deep, stack)) deep.pcs.push_back(frame.pc);
  REQUIRE(stack.end == StackEnd::kRoot);
  REQUIRE(deep.pcs.size() > 20);
  return deep;
}

TEST_CASE("a dumped stack is unwound", "[faults]") {
  const DeepSample deep = TakeDeepSample();
  RunFaults("`Unwinder::AddProcess`, Unwind", [&](Faults& faults) {
    faults.Begin();
    UnwoundStack stack;
    const std::vector<StackFrame> frames = Unwound(deep, stack);
    // Frames before the first guess are the true ones.
    const auto guess = std::ranges::find_if(frames, [](const StackFrame& frame) { return frame.is_guess; });
    const auto known = static_cast<size_t>(guess - frames.begin());
    REQUIRE(known <= deep.pcs.size());
    for (size_t i = 0; i < known; ++i) CHECK(frames[i].pc == deep.pcs[i]);
    if (known == deep.pcs.size()) return absl::OkStatus();
    CHECK((stack.end != StackEnd::kRoot || stack.guesses != 0));
    return absl::DataLossError("the stack is short, and says so");
  });
}

TEST_CASE("source lines of this program", "[faults]") {
  RunFaults("`Symbolizer::Inlined`, `DwarfLines`", [](Faults& faults) {
    faults.Begin();
    Symbolizer symbolizer({.debug_root = "", .lines = DwarfLines});
    if (absl::Status status = symbolizer.AddProcess(getpid()); !status.ok()) return status;
    const CodeLocation location =
        symbolizer.Locate(static_cast<uint32_t>(getpid()), reinterpret_cast<uint64_t>(&TouchDeep) + 1);
    const auto frames = symbolizer.Inlined(location);
    REQUIRE_FALSE(frames.empty());
    const SourceFrame& frame = frames.back();
    if (!frame.function.empty()) CHECK(frame.function.find("TouchDeep") != std::string_view::npos);
    if (frame.line == 0) return absl::NotFoundError("no line");
    CHECK(frame.file.find("unwind_faults_test.cc") != std::string_view::npos);
    return absl::OkStatus();
  });
}

TEST_CASE("a session with live stacks", "[faults]") {
  RunFaults("`Session`: live stacks", [](Faults& faults) {
    faults.Begin();
    absl::StatusOr<Session> session = Session::Start({.events = {{.event = "page-faults:u", .rate = Period{1}}},
                                                      .stacks = SessionStacks::kLive,
                                                      .memory_bytes = 1 << 20,
                                                      .own_thread = false,
                                                      .lines = false});
    if (!session.ok()) return session.status();
    testing::FreshPages memory(8);
    TouchDeep(memory, 20);
    absl::Status first = session->Poll();
    const absl::StatusOr<Profile> profile = session->Stop();
    first.Update(profile.status());
    if (!profile.ok()) return first;
    REQUIRE(profile->Check() == absl::OkStatus());
    CHECK(profile->Total(0).samples == profile->events[0].accounting.delivered);
    return first;
  });
}

}  // namespace
}  // namespace perfkit
