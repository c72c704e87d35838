// Makes a profile from the records of samplers: of other processes, CPUs, the system, or a program from its exec on.
//
//   perfkit::SamplerOptions options{.events = {{"cpu-clock"}}, .stack = perfkit::CallStack::UserDump(16 << 10),
//                                   .side_band = true};
//   auto sampler = perfkit::Sampler::Open(options, perfkit::Target::Process(pid));
//   perfkit::ProfileCollector collector(options);
//   absl::Status started = sampler->Start();
//   ...  // whenever sampler->poll_fd() is readable, or now and then; and once more after Stop:
//   sampler->Drain([&](const perfkit::SamplerRecord& record) { collector.Add(record, sampler->layout()); });
//   perfkit::Profile profile = collector.MakeProfile(*sampler);
//
// For the threads of this process, use a Session: it also has their off-CPU time and zones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "perfkit/profile.h"
#include "perfkit/sampler.h"

namespace perfkit {

struct ProfileCollectorOptions {
  // The only process that is sampled; 0 means any number of processes. Set it to getpid() for samplers of this
  // process's threads: mappings and names of its children are then not kept, and the profile has the program's name.
  uint32_t pid = 0;
  // Limits the memory of samples, stacks and addresses, as SessionOptions::memory_bytes; totals stay exact.
  size_t memory_bytes = 64 << 20;
  bool lines = true;     // Resolve source lines and inlined calls, if perfkit::dwarf is linked.
  bool demangle = true;  // Demangle C++ and Rust names.
};

// Aggregates records of samplers to a profile. Movable, not copyable: a moved-from one may only be assigned to or
// destroyed. Not thread-safe: any thread may call it, one at a time. Ignores followers (SampledEvent::followers).
//
// With CallStack::Live, samples in the kernel have user-space frames only if SamplerOptions::fields has
// kSampleRegsUser.
//
// With perfkit::dwarf, Add unwinds stacks that were dumped (CallStack::UserDump); without it, their samples are
// StackQuality::kLeafOnly, and a note says so.
class ProfileCollector {
 public:
  // `sampled` are the options with which the samplers are opened. Names of code require side_band, and times require
  // the default clock_id.
  explicit ProfileCollector(const SamplerOptions& sampled, ProfileCollectorOptions options = {});
  ProfileCollector(ProfileCollector&&) noexcept;
  ProfileCollector& operator=(ProfileCollector&&) noexcept;
  ~ProfileCollector();

  // Adds a record. Call it for each record, in the visitor of Drain. At the first sample of a process whose mappings no
  // record has reported, reads its mappings and name in /proc. Reads no other file, except that unwinding a dump maps
  // the files of its modules.
  //
  // Several samplers with the same options and different targets may share a collector. Then records are in order of
  // time for each sampler only: samples in code that was mapped since the previous drain may get the names of what was
  // mapped there before.
  void Add(const SamplerRecord& record, const SampleLayout& layout);

  // Returns the profile so far, with names, and with the accounting of `samplers`: those whose records were added. More
  // records may be added later. For a complete accounting, stop and drain the samplers first. Reads the files of code
  // that has no names yet. Profile::from_ns is the time of the collector's construction, to_ns is now, and `program` is
  // the name of process ProfileCollectorOptions::pid; they may be changed.
  Profile MakeProfile(std::span<const Sampler> samplers);
  Profile MakeProfile(const Sampler& sampler) { return MakeProfile(std::span(&sampler, 1)); }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace perfkit
