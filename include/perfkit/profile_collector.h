// Profiles of whatever a Sampler samples: other processes, CPUs, the system, a program from its start.
//
//   perfkit::SamplerOptions options{.events = {{"cpu-clock"}}, .stack = perfkit::CallStack::UserDump(16 << 10),
//                                   .side_band = true};
//   auto sampler = perfkit::Sampler::Open(options, perfkit::Target::Process(pid));
//   perfkit::ProfileCollector collector(options);
//   sampler->Start();
//   ...  // whenever sampler->poll_fd() is readable, or now and then; and once more after Stop:
//   sampler->Drain([&](const perfkit::SamplerRecord& record) { collector.Add(record, sampler->layout()); });
//   perfkit::Profile profile = collector.MakeProfile(*sampler);
//
// A Session does this for the threads of its own process, and knows more of them: their time off the CPU, their zones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "perfkit/profile.h"
#include "perfkit/sampler.h"

namespace perfkit {

struct ProfileCollectorOptions {
  // The only process that the samplers sample; 0: there may be any number. Set it to getpid() for samplers of this
  // process's threads: what its children map and how they are named is then not kept.
  uint32_t pid = 0;
  // Single samples and stacks may take this much; beyond it the oldest samples are merged (ProfileSample::merged) and
  // new stacks are cut to their leaf, and sums stay exact.
  size_t memory_bytes = 64 << 20;
  // Source lines and inlined calls, if perfkit::dwarf is linked.
  bool lines = true;
  // Demangle C++ and Rust names.
  bool demangle = true;
};

// Adds the records of samplers up in a profile. Movable, not copyable. Not thread-safe: any thread may call it, one at
// a time. Followers (SampledEvent::followers) are left out.
//
// Dumps of stacks (CallStack::UserDump) are unwound by Add if perfkit::dwarf is linked; if not, their samples are
// StackQuality::kLeafOnly, and a note says so. Add reads the mappings and the name of a process in /proc at its first
// sample if no record tells of them, as with Target::System; it reads no other file.
class ProfileCollector {
 public:
  // `sampled`: the options that the samplers are opened with. Names of code require side_band. Times require the
  // default clock_id.
  explicit ProfileCollector(const SamplerOptions& sampled, ProfileCollectorOptions options = {});
  ProfileCollector(ProfileCollector&&) noexcept;
  ProfileCollector& operator=(ProfileCollector&&) noexcept;
  ~ProfileCollector();

  // Adds a record: to be called by Drain's visitor with every record. Several samplers may share a collector, each with
  // a target of its own; their records are then in order of time by sampler only, and code that a process maps between
  // two drains may be named by what was mapped there before.
  void Add(const SamplerRecord& record, const SampleLayout& layout);

  // Returns the profile so far, with names, and with the accounting of the samplers whose records were added; more may
  // be added later. Reads the files of new code. For the whole accounting, stop and drain the samplers before.
  // Profile::from_ns is when the collector was made and to_ns now, `program` the name of process
  // ProfileCollectorOptions::pid: change them if you know better.
  Profile MakeProfile(std::span<const Sampler> samplers);
  Profile MakeProfile(const Sampler& sampler) { return MakeProfile(std::span(&sampler, 1)); }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace perfkit
