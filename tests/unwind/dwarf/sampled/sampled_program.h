// An installed program that is sampled until there are enough samples.
#pragma once

#include <signal.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "perfkit/child.h"
#include "perfkit/sampler.h"
#include "tests/support/work.h"

namespace perfkit::testing {

// Runs until its destructor.
class SampledProgram {
 public:
  // Until there are `enough` samples.
  SampledProgram(const std::vector<std::string>& command, CallStack stack, uint64_t period_ns, size_t enough) {
    SamplerOptions options;
    options.events = {{.event = "task-clock:u", .rate = Period{period_ns}}};
    options.stack = stack;
    options.side_band = true;
    options.ring_bytes = 2 << 20;
    child_ = Child::Spawn(command);
    REQUIRE(child_.ok());
    const rlimit seconds{120, 120};  // of CPU: should this be killed before it can kill
    prlimit(child_->pid(), RLIMIT_CPU, &seconds, nullptr);
    sampler_ = Sampler::Open(options, child_->target());
    INFO(sampler_.status());
    REQUIRE(sampler_.ok());
    REQUIRE(sampler_->Start().ok());
    REQUIRE(child_->Start().ok());
    for (int i = 0; i < 20000 && samples_ < enough; ++i) {
      Sleep(2'000'000);
      Drain();
    }
  }
  ~SampledProgram() {
    if (!child_.ok()) return;
    kill(child_->pid(), SIGKILL);
    (void)child_->Wait();
  }

  pid_t pid() const { return child_->pid(); }
  const SampleLayout& layout() const { return sampler_->layout(); }
  // Of all types, in order.
  const std::vector<std::string>& records() const { return records_; }

 private:
  void Drain() {
    sampler_->Drain([&](const SamplerRecord& record) {
      samples_ += record.type == static_cast<uint32_t>(RecordType::kSample);
      records_.emplace_back(reinterpret_cast<const char*>(record.data), record.size);
    });
  }

  absl::StatusOr<Child> child_ = absl::UnknownError("not spawned");
  absl::StatusOr<Sampler> sampler_ = absl::UnknownError("not opened");
  std::vector<std::string> records_;
  size_t samples_ = 0;
};

}  // namespace perfkit::testing
