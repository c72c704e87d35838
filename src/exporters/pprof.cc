// Writes profile.proto of github.com/google/pprof, gzipped.
//
// All tables of that format are repeated fields of one outermost message, so that each entry is handed on as soon as it
// is complete; entries may come in any order as long as strings keep theirs. Only what the samples need is written: a
// filtered profile has the tables of the whole. Samples that differ in nothing but their times are one sample there,
// if the same zones and frames were open.
// They are found by sorting indexes, so that beside the profile there are some bytes an entry of its tables, never a
// file.
#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "perfkit/exporters.h"
#include "src/base/utf8.h"
#include "src/exporters/accounting_text.h"
#include "src/exporters/gzip_sink.h"
#include "src/exporters/open_zones.h"
#include "src/exporters/pprof_fields.h"
#include "src/exporters/proto_file.h"
#include "src/profile/event_choice.h"
#include "src/profile/wait_text.h"

namespace perfkit {
namespace {

using protozero::pbf_writer;
namespace field = exporters::pprof;

constexpr size_t kProgressSamples = 4096;  // between two calls of WriteOptions::progress

int64_t Saturated(uint64_t value) {
  return static_cast<int64_t>(std::min<uint64_t>(value, std::numeric_limits<int64_t>::max()));
}

// What is known of the code of a module.
struct MappingFlags {
  bool used = false, functions = false, files = false, lines = false, inlined = false;

  void Add(const ProfileCall& call) {
    functions |= call.function != 0;
    files |= call.file != 0;
    lines |= call.line != 0;
    inlined |= call.inlined;
  }
};

void AddTo(uint64_t& sum, uint64_t value) {
  if (__builtin_add_overflow(sum, value, &sum)) sum = std::numeric_limits<uint64_t>::max();
}

class PprofWriter {
 public:
  PprofWriter(const Profile& profile, const WriteOptions& options, size_t default_event, profile::SinkBuffer& out)
      : profile_(profile), options_(options), default_event_(default_event), file_(out) {}

  void Write() {
    Text("");  // string_table[0]
    WriteHeader();
    WriteSamples();
    WriteLocations();
    WriteMappings();
  }

 private:
  // What two samples have in common that become one.
  using Key =
      std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint64_t, StackQuality, uint32_t, exporters::OpenZones::Open>;
  Key KeyOf(uint32_t index) const {
    const ProfileSample& sample = profile_.samples[index];
    const uint32_t wait = sample.wait == ProfileSample::kNoWait ? 0 : wait_texts_[sample.wait];
    return {sample.thread,      sample.stack,   sample.label, sample.task,
            sample.task_number, sample.quality, wait,         OpenAt(index)};
  }

  exporters::OpenZones::Open OpenAt(uint32_t index) const {
    return open_.empty() ? exporters::OpenZones::Open() : open_[index];
  }

  // A text's index in the string table, where it is written when it is first asked for.
  int64_t Text(std::string_view text) {
    const auto found = texts_.find(text);
    return found != texts_.end() ? found->second : texts_.emplace(text, AddText(text)).first->second;
  }
  // The same of one of Profile::strings.
  int64_t Text(uint32_t string) {
    if (string == 0) return 0;
    if (string_ids_[string] == 0) string_ids_[string] = AddText(profile_.strings[string]);
    return string_ids_[string];
  }
  int64_t AddText(std::string_view text) {
    const std::string valid = base::ValidUtf8(text);
    file_.Field([&](pbf_writer& file) { file.add_string(field::profile::kStringTable, valid); });
    return next_text_++;
  }

  void WriteHeader();
  void WriteSamples();
  void WriteSample(uint32_t index, const std::vector<int64_t>& values);
  void WriteLocations();
  void WriteLocation(uint32_t index);
  uint64_t FunctionOf(uint32_t location, const ProfileCall& call);
  void WriteMappings();
  void WriteMapping(uint32_t index, const MappingFlags& flags);
  void CountUnverified();
  void NameWaits();
  void FindOpenZones();

  // Labels whose strings are written before the sample that has them.
  struct Label {
    int64_t key, text, number, unit;
  };
  void AddLabel(std::string_view key, int64_t text) {
    if (text != 0) labels_.push_back({Text(key), text, 0, 0});
  }
  void AddNumber(std::string_view key, uint64_t number, std::string_view unit = {}) {
    labels_.push_back({Text(key), 0, Saturated(number), unit.empty() ? 0 : Text(unit)});
  }
  void GatherLabels(uint32_t index);

  const Profile& profile_;
  const WriteOptions& options_;
  const size_t default_event_;
  exporters::ProtoFile file_;
  const exporters::OpenZones zones_{profile_};

  int64_t next_text_ = 0;
  std::map<std::string, int64_t, std::less<>> texts_;                                // that are not in Profile::strings
  std::vector<int64_t> string_ids_ = std::vector<int64_t>(profile_.strings.size());  // 0: not written yet

  std::vector<uint32_t> wait_texts_;  // of each wait: an index in wait_names_
  std::vector<std::string> wait_names_{""};
  std::vector<exporters::OpenZones::Open> open_;  // of each sample; empty if there are no zones
  std::vector<uint32_t> guessed_, stitched_;      // calls of each stack that are
  std::vector<bool> used_locations_ = std::vector<bool>(profile_.locations.size());
  std::map<std::pair<uint64_t, uint32_t>, uint64_t> functions_;  // IDs by name and file

  // Buffers of one sample.
  std::vector<uint64_t> locations_;
  std::vector<Label> labels_;
};

void PprofWriter::WriteHeader() {
  const auto add_type = [&](std::string_view name, std::string_view unit) {
    const int64_t type = Text(name), unit_text = Text(unit);
    file_.Message(field::profile::kSampleType, [&](pbf_writer& message) {
      message.add_int64(field::value_type::kType, type);
      message.add_int64(field::value_type::kUnit, unit_text);
    });
  };
  add_type("samples", "count");
  for (const ProfileEvent& event : profile_.events) add_type(event.name, ProfileUnitName(event.unit));
  const int64_t default_type =
      Text(default_event_ < profile_.events.size() ? profile_.events[default_event_].name : "samples");
  std::vector<int64_t> comments;
  for (const std::string& line : exporters::AccountingLines(profile_)) comments.push_back(Text(line));
  file_.Field([&](pbf_writer& file) {
    file.add_int64(field::profile::kDefaultSampleType, default_type);
    if (profile_.realtime_offset_ns != 0) {
      file.add_int64(field::profile::kTimeNanos, Saturated(profile_.from_ns + profile_.realtime_offset_ns));
    }
    file.add_int64(field::profile::kDurationNanos,
                   Saturated(profile_.to_ns - std::min(profile_.from_ns, profile_.to_ns)));
    file.add_packed_int64(field::profile::kComment, comments.begin(), comments.end());
  });
}

void PprofWriter::NameWaits() {
  std::map<std::string, uint32_t, std::less<>> names{{"", 0}};
  wait_texts_.reserve(profile_.waits.size());
  for (const ProfileWait& wait : profile_.waits) {
    const auto [name, is_new] =
        names.try_emplace(profile::WaitText(profile_, wait), static_cast<uint32_t>(wait_names_.size()));
    if (is_new) wait_names_.push_back(name->first);
    wait_texts_.push_back(name->second);
  }
}

// Merged samples have no time, so that their zones are not known.
void PprofWriter::FindOpenZones() {
  if (profile_.zones.empty()) return;
  open_.reserve(profile_.samples.size());
  for (const ProfileSample& sample : profile_.samples) {
    open_.push_back(sample.merged() ? exporters::OpenZones::Open() : zones_.At(sample.thread, sample.time_ns));
  }
}

void PprofWriter::CountUnverified() {
  guessed_.resize(profile_.stacks.size());
  stitched_.resize(profile_.stacks.size());
  for (size_t i = 0; i < profile_.stacks.size(); ++i) {
    const ProfileStack& stack = profile_.stacks[i];
    const bool has_parent = stack.parent != ProfileStack::kRoot;
    guessed_[i] = (stack.is_guess ? 1 : 0) + (has_parent ? guessed_[stack.parent] : 0);
    stitched_[i] = (stack.is_stitched ? 1 : 0) + (has_parent ? stitched_[stack.parent] : 0);
  }
}

void PprofWriter::WriteSamples() {
  NameWaits();
  FindOpenZones();
  CountUnverified();
  const std::vector<ProfileSample>& samples = profile_.samples;
  std::vector<uint32_t> order(samples.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return KeyOf(a) < KeyOf(b); });
  std::vector<uint64_t> sums(1 + profile_.events.size());
  std::vector<int64_t> values(sums.size());
  size_t reported = 0;
  for (size_t at = 0; at < order.size() && !file_.failed();) {
    const uint32_t first = order[at];
    std::fill(sums.begin(), sums.end(), 0);
    for (; at < order.size() && KeyOf(order[at]) == KeyOf(first); ++at) {
      const ProfileSample& sample = samples[order[at]];
      AddTo(sums[0], sample.samples);
      AddTo(sums[1 + sample.event], sample.weight);
    }
    std::transform(sums.begin(), sums.end(), values.begin(), Saturated);
    if (std::any_of(values.begin(), values.end(), [](int64_t value) { return value != 0; })) WriteSample(first, values);
    if (options_.progress != nullptr && at / kProgressSamples != reported) {
      reported = at / kProgressSamples;
      options_.progress(static_cast<double>(at) / static_cast<double>(order.size()), options_.progress_argument);
    }
  }
}

void PprofWriter::GatherLabels(uint32_t index) {
  const ProfileSample& sample = profile_.samples[index];
  const ProfileThread& thread = profile_.threads[sample.thread];
  labels_.clear();
  AddLabel("thread", !thread.is_sum() ? Text(thread.name) : Text(profile_.ThreadName(sample.thread)));
  AddNumber("tid", thread.tid);
  AddNumber("pid", thread.pid);
  AddLabel("label", Text(sample.label));
  const exporters::OpenZones::Open open = OpenAt(index);
  if (open.zones != 0) AddLabel("zone", Text(zones_.ZoneText(open)));
  if (open.frames != 0) AddLabel("frame", Text(zones_.FrameText(open)));
  // With a unit, because pprof takes a number of 0 without one for no number (profile/encode.go, postDecode).
  if (const std::optional<uint64_t> number = zones_.FrameNumber(open)) AddNumber("frame_number", *number, "count");
  AddLabel("task", Text(sample.task));
  if (sample.task_number != 0) AddNumber("task_id", sample.task_number);
  AddLabel("stack", Text(StackQualityName(sample.quality)));
  if (sample.wait != ProfileSample::kNoWait && wait_texts_[sample.wait] != 0) {
    AddLabel("wait", Text(wait_names_[wait_texts_[sample.wait]]));
  }
  if (sample.stack == ProfileStack::kRoot) return;
  AddLabel("mode", Text(profile_.locations[profile_.stacks[sample.stack].location].kernel ? "kernel" : "user"));
  if (guessed_[sample.stack] != 0) AddNumber("guessed_calls", guessed_[sample.stack], "count");
  if (stitched_[sample.stack] != 0) AddNumber("stitched_calls", stitched_[sample.stack], "count");
}

void PprofWriter::WriteSample(uint32_t index, const std::vector<int64_t>& values) {
  const ProfileSample& sample = profile_.samples[index];
  GatherLabels(index);
  locations_.clear();
  for (uint32_t at = sample.stack; at != ProfileStack::kRoot; at = profile_.stacks[at].parent) {
    const uint32_t location = profile_.stacks[at].location;
    used_locations_[location] = true;
    locations_.push_back(uint64_t{location} + 1);
  }
  file_.Message(field::profile::kSample, [&](pbf_writer& message) {
    message.add_packed_uint64(field::sample::kLocationId, locations_.begin(), locations_.end());
    message.add_packed_int64(field::sample::kValue, values.begin(), values.end());
    for (const Label& label : labels_) {
      pbf_writer entry(message, field::sample::kLabel);
      entry.add_int64(field::label::kKey, label.key);
      if (label.text != 0) entry.add_int64(field::label::kStr, label.text);
      if (label.text == 0) entry.add_int64(field::label::kNum, label.number);
      if (label.unit != 0) entry.add_int64(field::label::kNumUnit, label.unit);
    }
  });
}

void PprofWriter::WriteLocations() {
  for (uint32_t i = 0; i < profile_.locations.size() && !file_.failed(); ++i) {
    if (used_locations_[i]) WriteLocation(i);
  }
}

void PprofWriter::WriteLocation(uint32_t index) {
  const ProfileLocation& location = profile_.locations[index];
  std::vector<std::pair<uint64_t, uint32_t>> lines;  // function and number, innermost first
  for (const ProfileCall& call : profile_.CallsAt(index)) lines.emplace_back(FunctionOf(index, call), call.line);
  file_.Message(field::profile::kLocation, [&](pbf_writer& message) {
    message.add_uint64(field::location::kId, uint64_t{index} + 1);
    if (location.module != ProfileLocation::kNoModule) {
      message.add_uint64(field::location::kMappingId, uint64_t{location.module} + 1);
    }
    message.add_uint64(field::location::kAddress, location.address);
    for (const auto& [function, number] : lines) {
      pbf_writer line(message, field::location::kLine);
      line.add_uint64(field::line::kFunctionId, function);
      if (number != 0) line.add_int64(field::line::kLine, number);
    }
  });
}

uint64_t PprofWriter::FunctionOf(uint32_t location, const ProfileCall& call) {
  // Calls without a name are one function a location, beyond all names.
  const uint64_t name_key = call.function != 0 ? call.function : uint64_t{location} << 32 | 1ULL << 63;
  const auto [entry, is_new] = functions_.try_emplace({name_key, call.file}, functions_.size() + 1);
  const uint64_t id = entry->second;
  if (!is_new) return id;
  const int64_t name = call.function != 0 ? Text(call.function) : AddText(profile_.CallName(location, call));
  const int64_t file = Text(call.file);
  // Without a system_name, readers take the name as it is: demangled.
  file_.Message(field::profile::kFunction, [&](pbf_writer& message) {
    message.add_uint64(field::function::kId, id);
    message.add_int64(field::function::kName, name);
    if (file != 0) message.add_int64(field::function::kFilename, file);
  });
  return id;
}

// The first mapping is the main program by the format's rule, and readers print its name.
void PprofWriter::WriteMappings() {
  std::vector<MappingFlags> flags(profile_.modules.size());
  for (uint32_t i = 0; i < profile_.locations.size(); ++i) {
    const uint32_t module = profile_.locations[i].module;
    if (!used_locations_[i] || module == ProfileLocation::kNoModule) continue;
    flags[module].used = true;
    for (const ProfileCall& call : profile_.CallsAt(i)) flags[module].Add(call);
  }
  const auto is_program = [&](uint32_t module) {
    const std::string_view path = profile_.strings[profile_.modules[module].path];
    return !profile_.program.empty() && path.substr(path.rfind('/') + 1) == profile_.program;
  };
  for (const bool program : {true, false}) {
    for (uint32_t i = 0; i < profile_.modules.size() && !file_.failed(); ++i) {
      if (flags[i].used && is_program(i) == program) WriteMapping(i, flags[i]);
    }
  }
}

// Without addresses: locations are in the module's file, wherever it was mapped.
void PprofWriter::WriteMapping(uint32_t index, const MappingFlags& flags) {
  const ProfileModule& module = profile_.modules[index];
  const int64_t path = Text(module.path), build_id = Text(module.build_id);
  file_.Message(field::profile::kMapping, [&](pbf_writer& message) {
    message.add_uint64(field::mapping::kId, uint64_t{index} + 1);
    if (path != 0) message.add_int64(field::mapping::kFilename, path);
    if (build_id != 0) message.add_int64(field::mapping::kBuildId, build_id);
    if (flags.functions) message.add_bool(field::mapping::kHasFunctions, true);
    if (flags.files) message.add_bool(field::mapping::kHasFilenames, true);
    if (flags.lines) message.add_bool(field::mapping::kHasLineNumbers, true);
    if (flags.inlined) message.add_bool(field::mapping::kHasInlineFrames, true);
  });
}

}  // namespace

absl::Status WritePprof(const Profile& profile, const WriteOptions& options, ProfileSink sink) {
  size_t default_event = 0;
  if (!options.event.empty()) {
    const absl::StatusOr<size_t> chosen = profile::ChooseEvent(profile, options.event);
    if (!chosen.ok()) return chosen.status();
    default_event = *chosen;
  }
  exporters::GzipSink gzip(sink);
  const auto compress = [&](std::string_view bytes) { return gzip.Write(bytes); };
  profile::SinkBuffer out(compress);
  PprofWriter(profile, options, default_event, out).Write();
  if (absl::Status status = out.Finish(); !status.ok()) return status;
  return gzip.Finish();
}

}  // namespace perfkit
