// Tries the locations of a debug file, the most reliable one first. What lies there proves nothing: packages are
// updated while old programs still run. So a file counts only if it is of the same build, by its build-id or, for lack
// of one, by the checksum of the whole file.
#include "src/symbolize/debug_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "src/elf/notes.h"
#include "src/sys/map_file.h"

namespace perfkit::symbolize {
namespace {

// The table of the bytewise CRC algorithm. 0xedb88320 is the polynomial with the lowest power first.
constexpr std::array<uint32_t, 256> kCrcSteps = [] {
  std::array<uint32_t, 256> steps{};
  for (uint32_t value = 0; value < 256; ++value) {
    uint32_t rest = value;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? 0xedb88320u : 0);
    steps[value] = rest;
  }
  return steps;
}();

struct Link {
  std::string_view name;
  uint32_t checksum = 0;
};

// Reads .gnu_debuglink: a file name, padding to 4 bytes, a checksum. Rejects paths: a hostile file must not choose
// which files are opened.
std::optional<Link> LinkOf(const elf::Image& image) {
  const std::optional<elf::Section> section = image.FindSection(".gnu_debuglink");
  const std::optional<base::Bytes> contents = section ? image.Contents(*section) : std::nullopt;
  const std::optional<std::string_view> name = contents ? base::TextAt(*contents, 0) : std::nullopt;
  if (!name || name->empty() || name->find('/') != name->npos || *name == "." || *name == "..") return std::nullopt;
  // At the next multiple of 4 after the name and its NUL.
  const auto checksum = base::ReadAt<uint32_t>(*contents, (name->size() + 4) / 4 * 4);
  if (!checksum) return std::nullopt;
  return Link{*name, *checksum};
}

// Returns true if both paths lead to one file.
bool IsSameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || std::filesystem::equivalent(a, b, error);
}

bool SameBytes(base::Bytes a, base::Bytes b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

// Returns the file at `path` if it belongs to the same build.
std::optional<DebugFile> TryFile(const std::string& path, std::optional<base::Bytes> build_id,
                                 std::optional<uint32_t> checksum) {
  absl::StatusOr<sys::Mapping> file = sys::MapFile(path);
  if (!file.ok()) return std::nullopt;
  const absl::StatusOr<elf::Image> image = elf::Image::Parse(file->bytes());
  if (!image.ok()) return std::nullopt;
  const std::optional<base::Bytes> theirs = elf::BuildId(*image);
  // The checksum last: it reads the whole file, which may have a gigabyte.
  const bool same = build_id && theirs ? SameBytes(*build_id, *theirs) : checksum && Crc32(file->bytes()) == *checksum;
  if (!same) return std::nullopt;
  return DebugFile{path, *std::move(file)};
}

std::string PathByBuildId(base::Bytes build_id, const std::string& root) {
  const std::string hex = elf::HexText(build_id);
  return absl::StrFormat("%s/.build-id/%s/%s.debug", root, hex.substr(0, 2), hex.substr(2));
}

// The contents of .gnu_debugaltlink: a name, then the build-id without padding.
struct SharedLink {
  std::string_view name;
  base::Bytes build_id;
};
std::optional<SharedLink> SharedLinkOf(const elf::Image& image) {
  const std::optional<elf::Section> section = image.FindSection(".gnu_debugaltlink");
  const std::optional<base::Bytes> contents = section ? image.Contents(*section) : std::nullopt;
  const std::optional<std::string_view> name = contents ? base::TextAt(*contents, 0) : std::nullopt;
  if (!name || name->empty() || contents->size() < name->size() + 3) return std::nullopt;
  return SharedLink{*name, contents->subspan(name->size() + 1)};
}

absl::StatusOr<DebugFile> FetchById(std::optional<base::Bytes> build_id, DebugFetcher& fetcher) {
  if (!build_id || build_id->empty()) return absl::NotFoundError("it has no build-id, by which servers could be asked");
  const absl::StatusOr<std::string> path = fetcher.Fetch(*build_id);
  if (!path.ok()) return path.status();
  std::optional<DebugFile> file = TryFile(*path, build_id, std::nullopt);
  if (!file) return absl::NotFoundError(absl::StrFormat("%s was downloaded, but belongs to another build", *path));
  return *std::move(file);
}

}  // namespace

absl::StatusOr<DebugFile> FetchDebugFile(const elf::Image& image, DebugFetcher& fetcher) {
  return FetchById(elf::BuildId(image), fetcher);
}

absl::StatusOr<DebugFile> FetchSharedDebugFile(const elf::Image& image, DebugFetcher& fetcher) {
  const std::optional<SharedLink> link = SharedLinkOf(image);
  return FetchById(link ? std::optional(link->build_id) : std::nullopt, fetcher);
}

std::optional<std::string> SharedDebugFileName(const elf::Image& image) {
  const std::optional<SharedLink> link = SharedLinkOf(image);
  return link ? std::optional<std::string>(link->name) : std::nullopt;
}

// Debian's links are paths, either absolute or relative to the debug file. A file of another build may be opened, but
// is never used.
std::optional<DebugFile> FindSharedDebugFile(const elf::Image& image, const std::string& path,
                                             const std::string& root) {
  const std::optional<SharedLink> link = SharedLinkOf(image);
  if (!link) return std::nullopt;
  const std::string name(link->name), folder = path.substr(0, path.rfind('/') + 1);
  std::vector<std::string> candidates = {name.starts_with('/') ? name : folder + name};
  if (!root.empty()) candidates.push_back(PathByBuildId(link->build_id, root));
  if (!root.empty()) candidates.push_back(root + "/.dwz/" + name.substr(name.rfind('/') + 1));
  for (const std::string& candidate : candidates) {
    if (auto found = TryFile(candidate, link->build_id, std::nullopt)) return found;
  }
  return std::nullopt;
}

uint32_t Crc32(base::Bytes bytes) {
  uint32_t rest = ~0u;
  for (const std::byte byte : bytes) rest = kCrcSteps[(rest ^ static_cast<uint32_t>(byte)) & 0xff] ^ (rest >> 8);
  return ~rest;
}

std::optional<DebugFile> FindDebugFile(const elf::Image& image, const std::string& path, const std::string& root) {
  const std::optional<base::Bytes> build_id = elf::BuildId(image);
  if (!root.empty() && build_id && build_id->size() >= 2) {
    if (auto found = TryFile(PathByBuildId(*build_id, root), build_id, std::nullopt)) return found;
  }
  const std::optional<Link> link = LinkOf(image);
  if (!link) return std::nullopt;
  const std::string folder = path.substr(0, path.rfind('/') + 1), name(link->name);
  std::vector<std::string> candidates = {folder + name, folder + ".debug/" + name};
  if (!root.empty()) candidates.push_back(root + folder + name);
  for (const std::string& candidate : candidates) {
    // A file in .debug/ may have the name of the stripped file, which has the same build-id.
    if (IsSameFile(candidate, path)) continue;
    if (auto found = TryFile(candidate, build_id, link->checksum)) return found;
  }
  return std::nullopt;
}

}  // namespace perfkit::symbolize
