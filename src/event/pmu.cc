// Reads PMU descriptions from sysfs. A PMU is loaded by its name: its type and its CPUs at once, its formats and named
// events only when a term asks for them, because most events need few of them. Reads are bounded, names are checked
// before they become parts of paths, and a malformed file gives FailedPrecondition with its name and contents. Letter
// case is ignored for names of events and respected for formats, as in perf.
#include "src/event/pmu.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "absl/strings/str_format.h"
#include "src/base/cpu_list.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/event/parse_error.h"
#include "src/sys/files.h"

namespace perfkit::event {
namespace {

// A file of sysfs has at most one page (fs/sysfs/file.c).
constexpr size_t kLargestSysfsFile = 64 << 10;

// /sys/devices has the same folders among others; this one has PMUs only.
std::string DevicesFolder(const EventRoots& roots) { return roots.sysfs + "/bus/event_source/devices"; }

// Names become parts of paths: refuses names that would leave the folder, and hidden files.
bool IsFileName(std::string_view name) {
  return !name.empty() && name.size() < 256 && name.front() != '.' && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

// Quotes the file, so that a reader of the error can look at it, and report a bug of the kernel.
absl::Status Nonsense(const std::string& path, std::string_view text, const char* what) {
  return absl::Status(absl::StatusCode::kFailedPrecondition,
                      absl::StrFormat("%s holds '%s', which is no %s", path, Printable(base::Trim(text)), what));
}

// As sys::ReadFile, with FailedPrecondition for all errors but NotFound and PermissionDenied.
absl::StatusOr<std::string> ReadSysfs(const std::string& path) {
  absl::StatusOr<std::string> text = sys::ReadFile(path, kLargestSysfsFile);
  if (text.ok() || absl::IsNotFound(text.status()) || absl::IsPermissionDenied(text.status())) return text;
  return absl::Status(absl::StatusCode::kFailedPrecondition, std::string(text.status().message()));
}

// Reads `cpus` or `cpumask` into `cpus`. Returns true if the file exists.
absl::StatusOr<bool> ReadCpus(const std::string& path, std::vector<int>& cpus) {
  const absl::StatusOr<std::string> text = ReadSysfs(path);
  if (!text.ok()) return absl::IsNotFound(text.status()) ? absl::StatusOr<bool>(false) : text.status();
  std::optional<std::vector<int>> list = base::ParseCpuList(*text);
  if (!list) return Nonsense(path, *text, "list of CPUs");
  cpus = *std::move(list);
  return true;
}

// A core PMU has `cpus`, an uncore PMU has `cpumask`, as in perf. x86 with one kind of core has neither, and its core
// PMU is called "cpu".
absl::Status ReadScope(Pmu& pmu) {
  const absl::StatusOr<bool> has_cpus = ReadCpus(pmu.folder + "/cpus", pmu.cpus);
  if (!has_cpus.ok()) return has_cpus.status();
  pmu.core = *has_cpus || pmu.name == "cpu";
  if (pmu.core) return absl::OkStatus();
  const absl::StatusOr<bool> has_mask = ReadCpus(pmu.folder + "/cpumask", pmu.cpus);
  if (!has_mask.ok()) return has_mask.status();
  pmu.cpu_wide = *has_mask;
  return absl::OkStatus();
}

// A missing folder has no names: most PMUs lack one or the other.
std::vector<std::string> FileNames(const std::string& folder) {
  absl::StatusOr<std::vector<std::string>> names = sys::ListFolder(folder);
  if (!names.ok()) return {};
  return *std::move(names);
}

// Returns the name in `folder` that equals `name`, or else equals it but for letter case, or else `name` itself.
std::string AnyCase(const std::string& folder, std::string_view name) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; };
  const auto same = [&](char a, char b) { return lower(a) == lower(b); };
  const std::vector<std::string> names = FileNames(folder);
  if (std::find(names.begin(), names.end(), name) != names.end()) return std::string(name);
  for (const std::string& known : names) {
    if (std::equal(known.begin(), known.end(), name.begin(), name.end(), same)) return known;
  }
  return std::string(name);
}

// Reads events/<name>.scale, a floating-point number: 1 if there is no such file. Its product with any count is finite.
absl::StatusOr<double> ReadScale(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadSysfs(path);
  if (!text.ok()) return absl::IsNotFound(text.status()) ? absl::StatusOr<double>(1.0) : text.status();
  const std::string_view digits = base::Trim(*text);
  double scale = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), scale);
  const bool whole = error == std::errc{} && stop == digits.data() + digits.size();
  if (!whole || !(scale > 0) || scale > 1e280) return Nonsense(path, *text, "scale");
  return scale;
}

}  // namespace

// The entries are links to folders, which are read only when they are needed.
std::vector<std::string> PmuNames(const EventRoots& roots) { return FileNames(DevicesFolder(roots)); }

// Each PMU has the file `type`: without it there is no PMU of that name.
absl::StatusOr<Pmu> LoadPmu(const EventRoots& roots, std::string_view name) {
  if (!IsFileName(name)) return absl::Status(absl::StatusCode::kNotFound, "not a PMU's name");
  Pmu pmu;
  pmu.name = name;
  pmu.folder = DevicesFolder(roots) + "/" + pmu.name;
  const absl::StatusOr<std::string> type = ReadSysfs(pmu.folder + "/type");
  if (!type.ok()) return type.status();
  const std::optional<uint32_t> number = base::ParseNumber<uint32_t>(base::Trim(*type));
  if (!number) return Nonsense(pmu.folder + "/type", *type, "number");
  pmu.type = *number;
  if (absl::Status read = ReadScope(pmu); !read.ok()) return read;
  return pmu;
}

// Each generic event calls this, so it opens few files: `cpus` rules out all but core PMUs.
std::vector<Pmu> HybridCorePmus(const EventRoots& roots) {
  std::vector<Pmu> cores;
  for (const std::string& name : PmuNames(roots)) {
    if (!sys::IsReadable(DevicesFolder(roots) + "/" + name + "/cpus")) continue;
    absl::StatusOr<Pmu> pmu = LoadPmu(roots, name);
    // A kind of core whose CPUs are all offline keeps its folder, with an empty list.
    if (pmu.ok() && pmu->core && !pmu->cpus.empty()) cores.push_back(*std::move(pmu));
  }
  if (cores.size() < 2) cores.clear();
  return cores;
}

// Names of formats must match to the letter, as in perf.
absl::StatusOr<BitField> LoadFormat(const Pmu& pmu, std::string_view name) {
  if (!IsFileName(name)) return absl::Status(absl::StatusCode::kNotFound, "not a term's name");
  const std::string path = absl::StrFormat("%s/format/%s", pmu.folder, name);
  const absl::StatusOr<std::string> text = ReadSysfs(path);
  if (!text.ok()) return text.status();
  const std::optional<BitField> field = ParseBitField(*text);
  if (!field) return Nonsense(path, *text, "format");
  return *field;
}

// The terms stay text: their meaning depends on the formats (pmu_part.cc).
absl::StatusOr<NamedEvent> LoadNamedEvent(const Pmu& pmu, std::string_view name) {
  if (!IsFileName(name)) return absl::Status(absl::StatusCode::kNotFound, "not an event's name");
  const std::string folder = pmu.folder + "/events";
  const std::string path = folder + "/" + AnyCase(folder, name);
  const absl::StatusOr<std::string> terms = ReadSysfs(path);
  if (!terms.ok()) return terms.status();
  const absl::StatusOr<double> scale = ReadScale(path + ".scale");
  if (!scale.ok()) return scale.status();
  const absl::StatusOr<std::string> unit = ReadSysfs(path + ".unit");
  NamedEvent event{.terms = std::string(base::Trim(*terms)), .scale = *scale, .unit = {}};
  if (unit.ok()) event.unit = Printable(base::Trim(*unit));
  return event;
}

// For suggestions and listings.
std::vector<std::string> FormatNames(const Pmu& pmu) { return FileNames(pmu.folder + "/format"); }

// The kernel describes events in files with a suffix beside them (Documentation/ABI, event_source-devices-events).
std::vector<std::string> EventNames(const Pmu& pmu) {
  std::vector<std::string> names = FileNames(pmu.folder + "/events");
  std::erase_if(names, [](const std::string& name) {
    const std::string_view view = name;
    return view.ends_with(".scale") || view.ends_with(".unit") || view.ends_with(".per-pkg") ||
           view.ends_with(".snapshot");
  });
  return names;
}

}  // namespace perfkit::event
