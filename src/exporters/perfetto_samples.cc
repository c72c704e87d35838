// Samples of a Perfetto trace. Each one is a packet with whatever it is the first on its sequence to mention: frames,
// mappings, names. IDs of interned entries are indexes of the profile's tables plus 1, for 0 is no ID. So a bit an
// entry is all that has to be kept to know what a sequence has seen.
#include "src/exporters/perfetto_samples.h"

#include <algorithm>
#include <charconv>

#include "src/base/utf8.h"

namespace perfkit::exporters::perfetto {
namespace {

constexpr size_t kProgressSamples = 4096;  // between two calls of WriteOptions::progress

// The unit that Perfetto knows for an event's weights.
uint32_t UnitOf(const ProfileEvent& event) {
  constexpr std::pair<std::string_view, uint32_t> kUnits[] = {
      {"cycles", sample_counter::kUnitCycles},
      {"instructions", sample_counter::kUnitInstructions},
      {"page-faults", sample_counter::kUnitPageFaults},
      {"cache-misses", sample_counter::kUnitCacheMisses},
      {"cache-references", sample_counter::kUnitCacheReferences},
      {"branch-misses", sample_counter::kUnitBranchMisses}};
  if (event.unit == ProfileUnit::kNanoseconds) return sample_counter::kUnitNanoseconds;
  if (event.unit == ProfileUnit::kBytes) return sample_counter::kUnitBytes;
  const std::string_view name = std::string_view(event.name).substr(0, event.name.find(':'));
  for (const auto& [known, unit] : kUnits) {
    if (name == known) return unit;
  }
  return sample_counter::kUnitCount;
}

// The bytes of hexadecimal digits: build IDs are raw in that format. "" if they are none.
std::string RawBytes(std::string_view digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    uint8_t byte = 0;
    const char* const end = digits.data() + i + 2;
    if (std::from_chars(digits.data() + i, end, byte, 16).ptr != end) return "";
    bytes += static_cast<char>(byte);
  }
  return digits.size() % 2 == 0 ? bytes : "";
}

}  // namespace

SampleWriter::Stream::Stream(const Profile& profile, uint64_t all_frames)
    : callstacks(profile.stacks.size()),
      frames(all_frames),
      mappings(profile.modules.size()),
      unnamed(profile.locations.size()),
      functions(profile.strings.size()),
      files(profile.strings.size()),
      paths(profile.strings.size()),
      build_ids(profile.strings.size()),
      contexts(2 * profile.strings.size()) {}

SampleWriter::SampleWriter(const Profile& profile, const WriteOptions& options, PacketWriter& packets)
    : profile_(profile), options_(options), packets_(packets) {
  first_frames_.reserve(profile.locations.size());
  for (const ProfileLocation& location : profile.locations) {
    first_frames_.push_back(frames_);
    frames_ += std::max(location.calls, 1U);  // code without names is one frame
  }
}

void SampleWriter::Write() {
  size_t reported = 0;
  for (size_t at = 0; at < profile_.samples.size() && !packets_.failed();) {
    const size_t followers = FollowersOf(at);
    WriteSample(at, followers);
    at += 1 + followers;
    if (options_.progress != nullptr && at / kProgressSamples != reported) {
      reported = at / kProgressSamples;
      options_.progress(static_cast<double>(at) / static_cast<double>(profile_.samples.size()),
                        options_.progress_argument);
    }
  }
}

// How many samples after this one were taken with it: followers count 0 samples of their own, and are else like their
// leader. They come right after it, as the table is sorted by time and that sort is stable.
size_t SampleWriter::FollowersOf(size_t leader) const {
  const ProfileSample& first = profile_.samples[leader];
  if (first.samples == 0 || first.merged() || IsOffCpu(first)) return 0;
  size_t next = leader + 1;
  for (; next < profile_.samples.size(); ++next) {
    const ProfileSample& sample = profile_.samples[next];
    const bool follows = sample.samples == 0 && !IsOffCpu(sample) && sample.time_ns == first.time_ns &&
                         sample.thread == first.thread && sample.stack == first.stack && sample.label == first.label &&
                         sample.task == first.task && sample.task_number == first.task_number &&
                         sample.wait == first.wait && sample.quality == first.quality;
    if (!follows) break;
  }
  return next - leader - 1;
}

SampleWriter::Stream& SampleWriter::StreamOf(const ProfileSample& sample) {
  const auto [entry, is_new] = streams_.try_emplace({sample.event, sample.merged()}, profile_, frames_);
  if (is_new) BeginStream(sample, entry->second);
  return entry->second;
}

void SampleWriter::BeginStream(const ProfileSample& sample, Stream& stream) {
  // The stream is in streams_ already.
  stream.sequence = kFirstSampleSequence + static_cast<uint32_t>(streams_.size()) - 1;
  const ProfileEvent& event = profile_.events[sample.event];
  const auto fill_defaults = [&](pbf_writer& message) {
    pbf_writer sample_defaults(message, defaults::kStackSample);
    sample_defaults.add_string(stack_sample_defaults::kSource,
                               base::ValidUtf8("perfkit." + event.name + (sample.merged() ? ".times-unknown" : "")));
    AddCounter(sample_defaults, stack_sample_defaults::kPrimaryDescriptor, 0, event);
  };
  packets_.Begin(stream.sequence, fill_defaults, [&](pbf_writer& message) {
    pbf_writer interned(message, packet::kInternedData);
    for (size_t i = 0; i < profile_.events.size(); ++i) {
      AddCounter(interned, interned::kCounterDescriptors, i + 1, profile_.events[i]);
    }
    // Counts how many samples a merged one stands for (AddFollowers).
    AddCounter(interned, interned::kCounterDescriptors, profile_.events.size() + 1, {.name = "samples"});
  });
}

void SampleWriter::AddCounter(pbf_writer& message, uint32_t tag, uint64_t iid, const ProfileEvent& event) const {
  pbf_writer descriptor(message, tag);
  if (iid != 0) descriptor.add_uint64(sample_counter::kIid, iid);
  descriptor.add_string(sample_counter::kName, base::ValidUtf8(event.name));
  descriptor.add_uint32(sample_counter::kUnit, UnitOf(event));
  if (event.user_only) descriptor.add_string(sample_counter::kDescription, "user space only");
}

void SampleWriter::WriteSample(size_t index, size_t followers) {
  const ProfileSample& sample = profile_.samples[index];
  Stream& stream = StreamOf(sample);
  const uint64_t time_ns = sample.merged() ? profile_.from_ns : sample.time_ns;
  packets_.PacketAt(stream.sequence, time_ns, [&](pbf_writer& message) {
    {
      pbf_writer interned(message, packet::kInternedData);
      InternContext(interned, stream, sample);
      InternStack(interned, stream, sample.stack);
    }
    pbf_writer stack_sample(message, packet::kStackSample);
    AddContext(stack_sample, sample);
    if (sample.stack != ProfileStack::kRoot) {
      stack_sample.add_uint64(stack_sample::kCallstackIid, uint64_t{sample.stack} + 1);
    }
    if (sample.quality != StackQuality::kWhole) {
      stack_sample.add_string(stack_sample::kUnwindError, std::string(StackQualityName(sample.quality)));
    }
    stack_sample.add_uint64(stack_sample::kPrimaryWeight, sample.weight);
    AddFollowers(stack_sample, index, followers);
  });
}

// Where it ran. A thread off its CPU is in no mode.
void SampleWriter::AddContext(pbf_writer& message, const ProfileSample& sample) const {
  const ProfileThread& thread = profile_.threads[sample.thread];
  {
    pbf_writer task(message, stack_sample::kTaskContext);
    task.add_uint32(task_context::kPid, thread.pid);
    task.add_uint32(task_context::kTid, thread.tid);
    if (const uint64_t context = ContextOf(sample); context != 0) task.add_uint64(task_context::kAsyncId, context);
  }
  if (sample.stack == ProfileStack::kRoot || IsOffCpu(sample)) return;
  const bool kernel = profile_.locations[profile_.stacks[sample.stack].location].kernel;
  pbf_writer execution(message, stack_sample::kExecutionContext);
  execution.add_uint32(execution_context::kMode,
                       kernel ? execution_context::kModeKernel : execution_context::kModeUser);
}

// The weights of the followers. A sample that stands for another number than one says for how many.
void SampleWriter::AddFollowers(pbf_writer& message, size_t index, size_t followers) {
  follower_iids_.clear(), follower_weights_.clear();
  for (size_t i = index + 1; i <= index + followers; ++i) {
    follower_iids_.push_back(uint64_t{profile_.samples[i].event} + 1);
    follower_weights_.push_back(profile_.samples[i].weight);
  }
  if (profile_.samples[index].samples != 1) {
    follower_iids_.push_back(profile_.events.size() + 1);
    follower_weights_.push_back(profile_.samples[index].samples);
  }
  message.add_packed_uint64(stack_sample::kFollowerDescriptorIids, follower_iids_.begin(), follower_iids_.end());
  message.add_packed_uint64(stack_sample::kFollowerWeights, follower_weights_.begin(), follower_weights_.end());
}

// The ID of what Perfetto shows samples by beside threads: the task, or else the label; 0: neither.
uint64_t SampleWriter::ContextOf(const ProfileSample& sample) const {
  if (sample.task != 0) return profile_.strings.size() + sample.task + 1;
  return sample.label != 0 ? uint64_t{sample.label} + 1 : 0;
}

void SampleWriter::InternContext(pbf_writer& interned, Stream& stream, const ProfileSample& sample) const {
  const uint64_t context = ContextOf(sample);
  if (context == 0 || stream.contexts[context - 1]) return;
  stream.contexts[context - 1] = true;
  const bool is_task = sample.task != 0;
  pbf_writer entry(interned, interned::kAsyncContexts);
  entry.add_uint64(async_context::kIid, context);
  entry.add_string(async_context::kName, base::ValidUtf8(profile_.strings[is_task ? sample.task : sample.label]));
  entry.add_string(async_context::kKind, is_task ? "task" : "label");
}

void SampleWriter::InternStack(pbf_writer& interned, Stream& stream, uint32_t stack) {
  if (stack == ProfileStack::kRoot || stream.callstacks[stack]) return;
  stream.callstacks[stack] = true;
  path_.clear();
  for (uint32_t at = stack; at != ProfileStack::kRoot; at = profile_.stacks[at].parent) {
    path_.push_back(profile_.stacks[at].location);
  }
  std::reverse(path_.begin(), path_.end());
  for (const uint32_t location : path_) {
    const uint32_t calls = std::max(profile_.locations[location].calls, 1U);
    for (uint32_t call = 0; call < calls; ++call) InternFrame(interned, stream, location, call);
  }
  pbf_writer callstack(interned, interned::kCallstacks);
  callstack.add_uint64(callstack::kIid, uint64_t{stack} + 1);
  for (const uint32_t location : path_) {  // outermost first: the function itself before what was inlined into it
    for (uint32_t call = std::max(profile_.locations[location].calls, 1U); call-- > 0;) {
      callstack.add_uint64(callstack::kFrameIds, first_frames_[location] + call + 1);
    }
  }
}

void SampleWriter::InternFrame(pbf_writer& interned, Stream& stream, uint32_t index, uint32_t call_index) {
  const uint64_t number = first_frames_[index] + call_index;
  if (stream.frames[number]) return;
  stream.frames[number] = true;
  const ProfileLocation& location = profile_.locations[index];
  const std::span<const ProfileCall> calls = profile_.CallsAt(index);
  const ProfileCall call = calls.empty() ? ProfileCall() : calls[call_index];
  const bool has_module = location.module != ProfileLocation::kNoModule;
  if (has_module) InternMapping(interned, stream, location.module);
  const uint64_t function = InternFunction(interned, stream, index, call);
  const uint64_t file = InternText(interned, interned::kSourcePaths, stream.files, call.file);
  pbf_writer frame(interned, interned::kFrames);
  frame.add_uint64(frame::kIid, number + 1);
  frame.add_uint64(frame::kFunctionNameId, function);
  if (has_module) frame.add_uint64(frame::kMappingId, uint64_t{location.module} + 1);
  if (has_module) frame.add_uint64(frame::kRelPc, location.address);
  if (file != 0) frame.add_uint64(frame::kSourcePathIid, file);
  if (call.line != 0) frame.add_uint32(frame::kLineNumber, call.line);
  frame.add_uint32(frame::kKind, location.kernel ? frame::kKindKernel : frame::kKindNative);
}

// Code without a name has one as reports print it: viewers of this format would show all of it as one.
uint64_t SampleWriter::InternFunction(pbf_writer& interned, Stream& stream, uint32_t location,
                                      const ProfileCall& call) const {
  if (call.function != 0) return InternText(interned, interned::kFunctionNames, stream.functions, call.function);
  // IDs of unnamed code follow those of all strings, which are 1 to strings.size().
  const uint64_t iid = profile_.strings.size() + 1 + location;
  if (stream.unnamed[location]) return iid;
  stream.unnamed[location] = true;
  pbf_writer entry(interned, interned::kFunctionNames);
  entry.add_uint64(interned::kIid, iid);
  entry.add_string(interned::kText, base::ValidUtf8(profile_.UnnamedCode(location)));
  return iid;
}

void SampleWriter::InternMapping(pbf_writer& interned, Stream& stream, uint32_t index) const {
  if (stream.mappings[index]) return;
  stream.mappings[index] = true;
  const ProfileModule& module = profile_.modules[index];
  const uint64_t path = InternText(interned, interned::kMappingPaths, stream.paths, module.path);
  const std::string build_id = RawBytes(profile_.strings[module.build_id]);
  if (!build_id.empty() && !stream.build_ids[module.build_id]) {
    stream.build_ids[module.build_id] = true;
    pbf_writer entry(interned, interned::kBuildIds);
    entry.add_uint64(interned::kIid, uint64_t{module.build_id} + 1);
    entry.add_bytes(interned::kText, build_id);
  }
  pbf_writer mapping(interned, interned::kMappings);
  mapping.add_uint64(mapping::kIid, uint64_t{index} + 1);
  if (!build_id.empty()) mapping.add_uint64(mapping::kBuildId, uint64_t{module.build_id} + 1);
  if (path != 0) mapping.add_uint64(mapping::kPathStringIds, path);
}

uint64_t SampleWriter::InternText(pbf_writer& interned, uint32_t tag, std::vector<bool>& known, uint32_t string) const {
  if (string == 0) return 0;
  if (!known[string]) {
    known[string] = true;
    pbf_writer entry(interned, tag);
    entry.add_uint64(interned::kIid, uint64_t{string} + 1);
    entry.add_string(interned::kText, base::ValidUtf8(profile_.strings[string]));
  }
  return uint64_t{string} + 1;
}

}  // namespace perfkit::exporters::perfetto
