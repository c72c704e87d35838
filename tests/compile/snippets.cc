// C++ of the documents that stands in no example, with what surrounds it in a program. The test `tidy` finds it here;
// headers.cmake compiles it with each compiler and language, and with a user's warnings.
#include <perfkit/profile.h>
#include <perfkit/ring_reader.h>
#include <perfkit/sample.h>
#include <perfkit/sampler.h>
#include <perfkit/symbolizer.h>
#include <perfkit/unwinder.h>

#include <map>
#include <span>
#include <string>

namespace {

using namespace perfkit;

template <class Name>
[[maybe_unused]] std::string NamesWithLeafCaller(const Sample& sample, Name name, size_t most) {
  const Words pcs = sample.chain().part(ChainContext::kUser);
  std::string names = name(pcs[0]);
  size_t size = 1;
  if (const auto caller = sample.leaf_caller(); caller && name(*caller - 1) != names)
    names += name(*caller - 1), ++size;
  for (size_t i = 1; i < pcs.size() && size < most; ++i, ++size) names += name(pcs[i] - 1);
  return names;
}

[[maybe_unused]] std::string TestName(const Sample& sample) {
  return NamesWithLeafCaller(sample, [](uint64_t pc) { return std::to_string(pc); }, 3);
}

[[maybe_unused]] size_t UnwindOne(Unwinder& unwinder, const Sample& sample, std::span<StackFrame> frames) {
  const UnwoundStack stack = unwinder.Unwind(sample, frames);
  return stack.frames;
}

[[maybe_unused]] size_t UnwindWithKernel(Unwinder& unwinder, const Sample& sample, std::span<StackFrame> frames) {
  const JoinedStack joined = unwinder.UnwindWithKernel(sample, frames);
  return joined.frames();
}

[[maybe_unused]] size_t InlinedCalls(Symbolizer& symbolizer, CodeLocation location) {
  const auto calls = symbolizer.Inlined(location);
  return calls.size();
}

[[maybe_unused]] uint64_t LiveCalls(Sampler* sampler, std::map<uint64_t, int>& calls) {
  uint64_t samples = 0;
  sampler->Drain([&](const SamplerRecord& record) {
    Dispatch(record, sampler->layout(),
             Overloaded{[&](const Sample&) { ++samples; },
                        [&](const LiveStack& stack) {
                          for (size_t i = 0; i < stack.size(); ++i) ++calls[stack[i].code()];
                        }});
  });
  return samples;
}

[[maybe_unused]] size_t OfWorkers(const Profile& profile) {
  const perfkit::Profile workers = profile.Filtered({.thread_name = "worker*", .zone = "physics"});
  return workers.samples.size();
}

}  // namespace
