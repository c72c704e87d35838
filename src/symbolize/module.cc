// Reads the symbols of a module's file and of its separate debug file. All sources are added to one table: what is
// missing in one may be in another, and what is in several is merged. The file stays mapped only if lines may be asked
// for later, because the table has copies of all names.
#include "src/symbolize/module.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "src/elf/notes.h"
#include "src/symbolize/elf_functions.h"

namespace perfkit::symbolize {
namespace {

absl::StatusOr<std::string> UnpackMini(base::Bytes packed, LineSource* lines) {
  if (lines != nullptr) return lines->UnpackMini(packed);
  return absl::Status(
      absl::StatusCode::kUnimplemented,
      "the component perfkit::dwarf decompresses them: SymbolizerOptions{.lines = perfkit::DwarfLines}");
}

absl::Status OnlyExported(const std::string& path, const absl::Status& why) {
  return absl::Status(
      why.ok() ? absl::StatusCode::kInvalidArgument : why.code(),
      absl::StrFormat("%s has only the names that it exports: the others are compressed in .gnu_debugdata; %s", path,
                      why.ok() ? "it contains no ELF file" : std::string(why.message())));
}

}  // namespace

// The vDSO is part of the kernel: no package has its debug file. Downloads nothing if the file itself is complete.
std::optional<DebugFile> Module::GetDebugFile(const elf::Image& image, const SymbolizerOptions& options,
                                              const Helpers& helpers) {
  if (!id_.is_file()) return std::nullopt;
  std::optional<DebugFile> here = FindDebugFile(image, id_.path, options.debug_root);
  const bool has_lines = image.FindSection(".debug_info") || image.FindSection(".zdebug_info");
  const bool has_all = image.FindSection(".symtab") && (has_lines || helpers.lines == nullptr);
  if (here || has_all || helpers.fetcher == nullptr) return here;
  absl::StatusOr<DebugFile> fetched = FetchDebugFile(image, *helpers.fetcher);
  if (fetched.ok()) return *std::move(fetched);
  fetched_ = fetched.status();
  return std::nullopt;
}

const absl::Status& Module::Load(const SymbolizerOptions& options, const Helpers& helpers) {
  if (loaded_) return status_;
  loaded_ = true;
  absl::StatusOr<proc::ModuleFile> file = proc::ModuleFile::Open(id_, options.proc);
  if (!file.ok()) return status_ = file.status();
  const elf::Image& image = file->image();
  if (const auto build_id = elf::BuildId(image); build_id && id_.build_id.empty()) {
    id_.build_id.assign(reinterpret_cast<const char*>(build_id->data()), build_id->size());
  }
  std::optional<DebugFile> debug = GetDebugFile(image, options, helpers);
  std::optional<elf::Image> debug_image;
  if (debug) {
    debug_path_ = debug->path;
    if (auto parsed = elf::Image::Parse(debug->bytes.bytes()); parsed.ok()) debug_image = *parsed;
  }
  status_ = TakeSymbols(image, debug_image ? &*debug_image : nullptr, helpers.lines);
  if (helpers.lines != nullptr && id_.is_file()) {
    file_ = *std::move(file);
    debug_ = std::move(debug);
  }
  return status_;
}

// The table takes no more room for names than the files have bytes. Fedora's files have the names of their private
// functions in a compressed ELF file in .gnu_debugdata ("MiniDebugInfo" in GDB's manual).
absl::Status Module::TakeSymbols(const elf::Image& image, const elf::Image* debug, LineSource* lines) {
  code_ = proc::LoadedCode(image);
  std::string unpacked;
  std::optional<elf::Image> mini;
  absl::Status status;
  const std::optional<elf::Section> packed = image.FindSection(".gnu_debugdata");
  if (packed && debug == nullptr && !image.FindSection(".symtab")) {
    absl::StatusOr<std::string> file = UnpackMini(image.Contents(*packed).value_or(base::Bytes()), lines);
    if (file.ok()) unpacked = *std::move(file);
    if (auto parsed = elf::Image::Parse(std::as_bytes(std::span(unpacked))); parsed.ok()) mini = *parsed;
    status = mini ? absl::OkStatus() : OnlyExported(name(), file.status());
  }
  SymbolTableBuilder builder(image.bytes().size() + unpacked.size() + (debug == nullptr ? 0 : debug->bytes().size()));
  AddFunctions(image, builder);
  if (debug != nullptr) AddFunctions(*debug, builder);
  if (mini) AddFunctions(*mini, builder);
  AddPltStubs(image, builder);
  table_ = std::move(builder).Build();
  return status;
}

}  // namespace perfkit::symbolize
