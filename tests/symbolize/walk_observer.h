// What samples each page fault of the walk over modules, names its code, and holds the names to the truth.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_format.h"
#include "perfkit/profile_collector.h"
#include "perfkit/sampler.h"
#include "perfkit/symbolizer.h"
#include "src/elf/notes.h"
#include "tests/symbolize/walk_case.h"

namespace perfkit::walk {

// A page that was touched, by what.
struct Touched {
  pid_t pid = 0;
  uint64_t address = 0;
  size_t build = 0, function = 0, file = 0;  // Of code in a file.
  std::optional<size_t> jit;                 // Of code that was made at run time: its number.
  size_t actor = 0, slot = 0;                // Of such code.
  bool inherited = false;                    // Only the parent has listed it, and there is no record of the fork.
  uint64_t offset = 0;                       // Of the instruction in its function.
  bool sampled = false;                      // It is in a sample, or lost.
  bool hidden = false;                       // It is in no sample.
  // What was sampled.
  int times = 0;
  CodeLocation location;

  std::string Name() const { return jit ? JitName(*jit) : absl::StrFormat("build%d_function%d", build, function); }
  std::string BuildId() const {
    const std::string id = jit ? "" : BuildOf(build).build_id;
    return elf::HexText(std::as_bytes(std::span(id)));
  }
};

// What is known of the files beside what was touched.
class Truth {
 public:
  virtual ~Truth() = default;
  // Whether `path` can be the path of the file that `touched` ran in.
  virtual bool CanBeAt(const Touched& touched, std::string_view path) const = 0;
  // Whether a file with the code of `touched` is where it can be read, at `path`.
  virtual bool InPlace(const Touched& touched, std::string_view path) const = 0;
  // Whether code of `touched`, which was made at run time, may have this name: that of the latest function at its
  // address, or, in profiles, which have one name for each address, of any.
  virtual bool MayBeNamed(const Touched& touched, std::string_view name, bool in_profile) const = 0;
  virtual bool MustBeNamed(const Touched& touched) const = 0;
  // Returns true if there may be no name although a list of functions was read.
  virtual bool MayLackReason(const Touched& touched) const = 0;
};

class Observer {
 public:
  Observer(const Walk& walk, const Truth& truth) : walk_(walk), truth_(truth) {
    options_.events = {{.event = "page-faults:u", .rate = Period{1}}};
    options_.fields = kSampleAddr;
    options_.side_band = true;
    collector_.emplace(options_, ProfileCollectorOptions{.pid = walk.own ? static_cast<uint32_t>(getpid()) : 0});
  }

  absl::Status Open(Target target) {
    absl::StatusOr<Sampler> sampler = Sampler::Open(options_, target);
    if (sampler.ok()) sampler_.emplace(*std::move(sampler));
    return sampler.status();
  }
  Sampler& sampler() { return *sampler_; }
  const std::string& wrong() const { return wrong_; }

  void Expect(const Touched& touched) { touched_[{touched.pid, touched.address}] = touched; }

  void Drain() {
    sampler_->Drain([&](const SamplerRecord& record) {
      symbolizer_.Add(record, sampler_->layout());
      collector_->Add(record, sampler_->layout());
      Dispatch(record, sampler_->layout(), [&](const Sample& sample) { OnSample(sample); });
    });
  }
  // Reads the mappings of a process, once all samples of before are delivered: the latest records stay in the rings.
  void AddProcess(pid_t pid) {
    for (int drains = 0; drains == 0 || (drains < 10'000 && Awaits()); ++drains) Drain();
    Check(symbolizer_.AddProcess(pid), "AddProcess");
  }
  void NameAll() {
    for (const auto& [key, touched] : touched_) {
      const CodeLocation location = touched.location;
      if (touched.times > 0) Judge(touched, [&, location] { return symbolizer_.Name(location); });
    }
    JudgeProfile();
  }
  // Once the sampler is stopped, and drained.
  void CheckAllSampled() {
    const SamplerStats stats = sampler_->stats();
    if (stats.side_band_lost > 0) return Wrong("the side band lost records");
    for (const auto& [key, touched] : touched_) {
      if (touched.sampled && touched.times == 0 && stats.events[0].lost == 0) Wrong("no sample of " + Text(touched));
    }
  }
  void Check(const absl::Status& status, const char* what) {
    if (!status.ok()) Wrong(absl::StrFormat("%s: %s", what, std::string(status.message())));
  }

  size_t named() const { return named_; }
  size_t unnamed() const { return unnamed_; }

 private:
  void Wrong(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }
  std::string Text(const Touched& touched) const {
    return absl::StrFormat("%s of file %d in %d", touched.Name(), touched.file, touched.pid);
  }

  bool Awaits() const {
    return std::any_of(touched_.begin(), touched_.end(),
                       [](const auto& it) { return it.second.sampled && it.second.times == 0; });
  }

  void OnSample(const Sample& sample) {
    const pid_t pid = static_cast<pid_t>(sample.task()->pid);
    const auto found = touched_.find({pid, *sample.address()});
    if (found == touched_.end()) return;
    Touched& touched = found->second;
    if (++touched.times > 1) Wrong("a second sample of " + Text(touched));
    if (touched.hidden) Wrong("a sample, but should not be: " + Text(touched));
    touched.location = symbolizer_.Locate(sample.task()->pid, *sample.ip(), sample.cpu_mode());
    by_time_[{sample.task()->tid, *sample.time_ns()}] = &touched;
    if (touched.location.module == 0) Wrong("in no known mapping: " + Text(touched));
    if (walk_.late) return;
    Judge(touched, [&] { return symbolizer_.Resolve(sample.task()->pid, *sample.ip(), sample.cpu_mode()); });
    Judge(touched, [&] { return symbolizer_.Name(touched.location); });
  }

  void Judge(const Touched& touched, absl::FunctionRef<Symbol()> name) {
    const std::string recorded_id = symbolizer_.BuildId(touched.location);
    const Symbol symbol = name();
    if (!touched.jit) {
      // A module's file is read at the first lookup, which decides for all later ones.
      const bool in_place = !recorded_id.empty() && truth_.InPlace(touched, symbol.module);
      const bool must = must_be_named_.try_emplace(touched.location.module, in_place).first->second;
      if (must && !symbol.named()) Wrong("no name, though its file is there: " + Text(touched));
      for (const std::string& id : {recorded_id, symbolizer_.BuildId(touched.location)}) {
        if (!id.empty() && id != touched.BuildId()) Wrong("another build-id than that of " + Text(touched));
      }
    } else if (truth_.MustBeNamed(touched) && !symbol.named()) {
      Wrong("no name, though it is in the list: " + Text(touched));
    }
    JudgeName(touched, symbol.function, symbol.module, false);
    if (symbol.named() && symbol.offset != touched.offset)
      Wrong(absl::StrFormat("%s at %d", Text(touched), symbol.offset));
    if (!symbol.named() && !truth_.MayLackReason(touched) && !HasReason(symbol.module))
      Wrong("no name and no reason: " + Text(touched));
    ++(symbol.named() ? named_ : unnamed_);
  }

  // Right, or unknown.
  void JudgeName(const Touched& touched, std::string_view function, std::string_view module, bool in_profile) {
    const bool right_module = touched.jit ? module.starts_with("//anon") : truth_.CanBeAt(touched, module);
    if (!right_module) Wrong(absl::StrFormat("the module %s of %s", std::string(module), Text(touched)));
    if (function.empty() || function == touched.Name()) return;
    if (touched.jit && truth_.MayBeNamed(touched, function, in_profile)) return;
    Wrong(absl::StrFormat("%s is named %s", Text(touched), std::string(function)));
  }

  bool HasReason(std::string_view module) const {
    const std::vector<SymbolizedModule> modules = symbolizer_.Modules();
    return std::any_of(modules.begin(), modules.end(),
                       [&](const SymbolizedModule& it) { return it.name == module && !it.status.ok(); });
  }

  void JudgeProfile() {
    const Profile profile = collector_->MakeProfile(*sampler_);
    Check(profile.Check(), "Profile::Check");
    for (const ProfileSample& sample : profile.samples) {
      const auto found = by_time_.find({profile.threads[sample.thread].tid, sample.time_ns});
      if (found == by_time_.end()) continue;
      if (sample.stack == ProfileStack::kRoot) return Wrong("no stack in the profile: " + Text(*found->second));
      const uint32_t at = profile.stacks[sample.stack].location;
      const ProfileLocation& location = profile.locations[at];
      if (location.module == ProfileLocation::kNoModule)
        return Wrong("no module in the profile: " + Text(*found->second));
      const ProfileModule& module = profile.modules[location.module];
      const auto calls = profile.CallsAt(at);
      const uint32_t name = calls.empty() ? 0 : calls.front().function;
      JudgeName(*found->second, profile.strings[name], profile.strings[module.path], true);
      const std::string& id = profile.strings[module.build_id];
      if (!id.empty() && id != found->second->BuildId())
        Wrong("another build-id in the profile: " + Text(*found->second));
    }
  }

  const Walk& walk_;
  const Truth& truth_;
  SamplerOptions options_;
  std::optional<Sampler> sampler_;
  Symbolizer symbolizer_;
  std::optional<ProfileCollector> collector_;
  std::map<std::pair<pid_t, uint64_t>, Touched> touched_;
  std::map<std::pair<uint32_t, uint64_t>, const Touched*> by_time_;  // By thread and time.
  std::map<uint32_t, bool> must_be_named_;                           // By module.
  size_t named_ = 0, unnamed_ = 0;
  std::string wrong_;
};

}  // namespace perfkit::walk
