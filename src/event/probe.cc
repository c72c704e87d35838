// Parses uprobes and finds their offset in the file; the kernel's side is its "uprobe" PMU (kernel/events/core.c,
// perf_uprobe).
#include "src/event/probe.h"

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/event/parse_error.h"
#include "src/event/pmu.h"
#include "src/event/probe_location.h"
#include "src/sys/files.h"
#include "src/sys/map_file.h"

namespace perfkit::event {
namespace {

// The parts of the text, as views into it.
struct ProbeLocation {
  std::string_view file;
  std::string_view symbol;  // "" if only an offset is given.
  uint64_t offset = 0;
};

// Returns another room's Status, with the event and the position in front.
absl::Status Restate(std::string_view whole, std::string_view piece, const absl::Status& status) {
  return ErrorAt(status.code(), whole, piece, std::string(status.message()));
}

// Removes "+0x1234" from the end of `text`. Returns false if it has no offset ("libstdc++.so").
bool TakeOffset(std::string_view& text, uint64_t& offset) {
  const size_t plus = text.rfind('+');
  if (plus == std::string_view::npos) return false;
  const std::optional<uint64_t> number = base::ParsePrefixed(text.substr(plus + 1));
  if (!number) return false;
  offset = *number;
  text = text.substr(0, plus);
  return true;
}

// Splits "file:symbol[+offset][:modifiers]" or "file+offset[:modifiers]". A colon in the name of a folder separates
// nothing.
absl::StatusOr<ProbeLocation> ParseLocation(std::string_view whole, std::string_view body,
                                            std::optional<std::string_view>& modifiers) {
  const size_t slash = body.rfind('/');
  const size_t name_at = slash == std::string_view::npos ? 0 : slash + 1;
  const size_t colon = body.find(':', name_at);
  ProbeLocation location{.file = body.substr(0, colon), .symbol = {}, .offset = 0};
  std::string_view rest = colon == std::string_view::npos ? std::string_view() : body.substr(colon + 1);
  if (TakeOffset(location.file, location.offset)) {
    if (colon != std::string_view::npos) modifiers = rest;
  } else {
    location.symbol = rest.substr(0, rest.find(':'));
    if (location.symbol.size() < rest.size()) modifiers = rest.substr(location.symbol.size() + 1);
    TakeOffset(location.symbol, location.offset);
    if (location.symbol.empty()) {
      return WrongAt(whole, body.substr(body.size()),
                     "which function? Write 'uprobe:file:symbol' or 'uprobe:file+0x1234'");
    }
  }
  if (location.file.empty()) return WrongAt(whole, body, "which file? Write 'uprobe:file:symbol'");
  return location;
}

// Returns the probe's offset in its file, and checks it: the kernel accepts offsets that are no instruction.
absl::StatusOr<uint64_t> Locate(std::string_view whole, const ProbeLocation& location, const std::string& path,
                                const EventRoots& roots) {
  const absl::StatusOr<sys::Mapping> file = sys::MapFile(path);
  if (!file.ok()) {
    const bool is_in_proc = path.starts_with(roots.proc + "/");
    return Restate(
        whole, location.file,
        is_in_proc ? sys::WithMountRemedy(file.status(), sys::KernelFiles::kProc, roots.proc) : file.status());
  }
  const absl::StatusOr<elf::Image> image = elf::Image::Parse(file->bytes());
  if (!image.ok()) {
    return WrongAt(whole, location.file, absl::StrFormat("%s is %s", path, std::string(image.status().message())));
  }
  if (location.symbol.empty()) {
    if (location.offset < file->size()) return location.offset;
    return WrongAt(whole, location.file, absl::StrFormat("offset 0x%x lies outside %s", location.offset, path));
  }
  const absl::StatusOr<uint64_t> code = FindCode(*image, location.symbol);
  if (!code.ok()) return Restate(whole, location.symbol, code.status());
  if (location.offset >= file->size() - *code) {
    return WrongAt(whole, location.symbol, absl::StrFormat("offset 0x%x lies outside %s", location.offset, path));
  }
  return *code + location.offset;
}

}  // namespace

// The kernel identifies probes by file and offset; symbols are looked up here.
absl::Status FillProbe(std::string_view whole, std::string_view text, const EventRoots& roots, EventConfig& config,
                       std::optional<std::string_view>& modifiers) {
  const bool at_return = text.starts_with(kReturnProbePrefix);
  const std::string_view body = text.substr(at_return ? kReturnProbePrefix.size() : kEntryProbePrefix.size());
  const absl::StatusOr<ProbeLocation> location = ParseLocation(whole, body, modifiers);
  if (!location.ok()) return location.status();
  const bool is_path = location->file.find('/') != std::string_view::npos;
  const absl::StatusOr<std::string> path =
      is_path ? absl::StatusOr<std::string>(std::string(location->file)) : FindMappedFile(location->file, roots);
  if (!path.ok()) return Restate(whole, location->file, path.status());
  const absl::StatusOr<uint64_t> offset = Locate(whole, *location, *path, roots);
  if (!offset.ok()) return offset.status();
  const absl::StatusOr<Pmu> pmu = LoadPmu(roots, "uprobe");
  if (absl::IsNotFound(pmu.status()) && sys::IsMounted(sys::KernelFiles::kSysfs, roots.sysfs)) {
    return MissingAt(whole, text, "this kernel counts no uprobes (they came with Linux 4.17, CONFIG_UPROBE_EVENTS)");
  }
  if (!pmu.ok()) {
    return Restate(whole, text, sys::WithMountRemedy(pmu.status(), sys::KernelFiles::kSysfs, roots.sysfs));
  }
  // If there is no format file: bit 0, as in every kernel so far.
  const absl::StatusOr<BitField> retprobe = LoadFormat(*pmu, "retprobe");
  const uint64_t bit = retprobe.ok() && retprobe->word == 0 ? Spread(*retprobe, 1).value_or(1) : 1;
  config.probe_path = *path;
  config.parts.push_back({.type = pmu->type,
                          .config = at_return ? bit : 0,
                          .config1 = 0,  // ToAttr sets the path's address.
                          .config2 = *offset,
                          .config3 = 0,
                          .pmu = pmu->name,
                          .only_cpus = {}});
  return absl::OkStatus();
}

}  // namespace perfkit::event
