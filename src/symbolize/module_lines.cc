// Finds the sections with a module's debug information, and registers them with the LineSource. They may be in the
// module's own file, in its separate debug file, and the parts that several files share in a third one (dwz).
#include <elf.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "src/elf/notes.h"
#include "src/symbolize/module.h"

namespace perfkit::symbolize {
namespace {

std::vector<DebugSection> DebugSections(const elf::Image& image) {
  std::vector<DebugSection> sections;
  for (uint32_t i = 0; i < image.section_count(); ++i) {
    const std::optional<elf::Section> section = image.section(i);
    if (!section || !(section->name.starts_with(".debug_") || section->name.starts_with(".zdebug_"))) continue;
    const std::optional<base::Bytes> bytes = image.Contents(*section);
    if (bytes) sections.push_back({section->name, *bytes, (section->flags & SHF_COMPRESSED) != 0});
  }
  return sections;
}

// Without entries there is nothing to find, whatever other sections there are (.debug_frame, .debug_gdb_scripts).
bool HasEntries(const std::vector<DebugSection>& sections) {
  for (const DebugSection& section : sections) {
    if (section.name == ".debug_info" || section.name == ".zdebug_info") return true;
  }
  return false;
}

// Returns a status that lists the remedies.
absl::Status NoDebugInformation(const std::string& path, const elf::Image& image, const std::string& root,
                                const absl::Status& fetched) {
  const base::Bytes id = elf::BuildId(image).value_or(base::Bytes());
  std::string places = root.empty() ? std::string() : " below " + root;
  if (!fetched.ok()) {
    places += absl::StrFormat(" (%s)", fetched.message());
  } else if (!id.empty()) {
    places += absl::StrFormat(" (build-id %s: SymbolizerOptions{.fetch = perfkit::Debuginfod} downloads it)",
                              elf::HexText(id));
  }
  return absl::Status(
      absl::StatusCode::kNotFound,
      absl::StrFormat("%s has no debug information. Remedy: compile it with -g, or install its separate debug "
                      "file%s (Debian: PACKAGE-dbgsym, named by find-dbgsym-packages)",
                      path, places));
}

}  // namespace

const absl::Status& Module::OpenLines(const SymbolizerOptions& options, const Helpers& helpers, uint32_t number) {
  if (std::exchange(lines_opened_, true)) return lines_status_;
  if (helpers.lines == nullptr) {
    lines_status_ = absl::Status(absl::StatusCode::kUnimplemented,
                                 "source lines and inlined calls need the component perfkit::dwarf: link it, and set "
                                 "SymbolizerOptions{.lines = perfkit::DwarfLines}");
  } else if (!file_) {
    lines_status_ = status_.ok() ? absl::NotFoundError("code without a file has no lines") : status_;
  } else {
    lines_status_ = OpenSections(options, helpers, number);
  }
  return lines_status_;
}

// Prefers the separate debug file; without one, the module's file itself may have the sections.
absl::Status Module::OpenSections(const SymbolizerOptions& options, const Helpers& helpers, uint32_t number) {
  const elf::Image& image = file_->image();
  std::vector<DebugSection> sections = DebugSections(image), shared;
  elf::Image with_lines = image;
  std::string path = id_.path;
  if (const auto debug = elf::Image::Parse(debug_ ? debug_->bytes.bytes() : base::Bytes()); debug.ok()) {
    std::vector<DebugSection> separate = DebugSections(*debug);
    if (HasEntries(separate)) {
      sections = std::move(separate);
      with_lines = *debug;
      path = debug_->path;
    }
  }
  if (!HasEntries(sections)) return NoDebugInformation(id_.path, image, options.debug_root, fetched_);
  const std::optional<std::string> shared_name = SharedDebugFileName(with_lines);
  if (shared_name) {
    shared_ = FindSharedDebugFile(with_lines, path, options.debug_root);
    if (!shared_ && helpers.fetcher != nullptr) {
      absl::StatusOr<DebugFile> far = FetchSharedDebugFile(with_lines, *helpers.fetcher);
      if (far.ok()) shared_ = *std::move(far);
    }
    const auto parsed = elf::Image::Parse(shared_ ? shared_->bytes.bytes() : base::Bytes());
    if (parsed.ok()) shared = DebugSections(*parsed);
  }
  absl::Status opened = helpers.lines->Open(number, sections, shared);
  if (!opened.ok()) {
    return absl::Status(opened.code(), absl::StrFormat("lines of %s: %s", path, std::string(opened.message())));
  }
  if (!shared_name || !shared.empty()) {
    const absl::Status gaps = helpers.lines->FindGaps(number);
    return gaps.ok() ? gaps : absl::Status(gaps.code(), absl::StrFormat("%s: %s", path, std::string(gaps.message())));
  }
  return absl::Status(
      absl::StatusCode::kNotFound,
      absl::StrFormat("%s has lines, but some functions have no names: those are in %s (.gnu_debugaltlink), which is "
                      "missing or belongs to another build. Remedy: install the complete -dbgsym package",
                      path, *shared_name));
}

}  // namespace perfkit::symbolize
