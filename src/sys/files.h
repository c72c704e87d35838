// Reads whole files and lists folders of /proc, sysfs and tracefs.
//
// Such files report no useful size, and may change or vanish between two calls. So each is read once, as a whole, up to
// a bound. All functions are thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "src/sys/fd.h"

namespace perfkit::sys {

// Larger files are not read: the largest expected file, /proc/kallsyms, has about 12 MiB.
constexpr size_t kLargestFile = 64 << 20;

// The remedy if a file can't be opened for lack of a descriptor (ResourceExhausted).
inline constexpr std::string_view kMoreDescriptors = "raise the limit on descriptors (ulimit -n), or close some";

// Returns `error` with kMoreDescriptors as its remedy if it is ResourceExhausted: the code of EMFILE and ENFILE.
absl::Status WithDescriptorRemedy(const absl::Status& error);

// A file system of the kernel.
enum class KernelFiles : uint8_t { kProc, kSysfs };

// Returns true if one of this kind is mounted at `folder` and, of procfs, shows this process.
bool IsMounted(KernelFiles kind, const std::string& folder);

// Returns `error` with the remedy to mount the file system if it is NotFound because none is mounted at `folder`.
absl::Status WithMountRemedy(const absl::Status& error, KernelFiles kind, const std::string& folder);

// Returns the contents of `path`. Errors: NotFound, PermissionDenied or another code by errno; OutOfRange beyond `most`
// bytes.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t most = kLargestFile);

// Opens `path` for reading. Returns no descriptor, with errno set, if that fails.
OwnedFd OpenToRead(const char* path);

// Returns what `fd`, the open file `path`, has from its position to its end. Errors: as ReadFile.
absl::StatusOr<std::string> ReadToEnd(const OwnedFd& fd, const std::string& path, size_t most = kLargestFile);

// Returns the names in folder `path`, sorted, without "." and "..". Errors: as ReadFile.
absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path);

// Returns how many descriptors of this process are open and below `limit`. Errors: as ListFolder.
absl::StatusOr<uint64_t> CountDescriptors(uint64_t limit, const std::string& proc = "/proc");

// A folder in a folder.
struct Subfolder {
  std::string name;
  uint64_t inode = 0;
};
// Returns the folders in `path`, in the order of the file system; those that can't be listed are empty. For file
// systems that give the type of each file, as those of the kernel do.
std::vector<Subfolder> ListSubfolders(const std::string& path);

// Returns the inode number of `path`; nullopt if it cannot be looked at.
std::optional<uint64_t> InodeOf(const std::string& path);

// Returns the target of the symbolic link `path`, at most 4,096 bytes of it; "" if it cannot be read.
std::string LinkTarget(const std::string& path);

// Returns true if `path` exists and this process can see it.
bool Exists(const std::string& path);

// Returns the owner of `path`; nullopt if it cannot be looked at.
std::optional<uid_t> OwnerOf(const std::string& path);

// Returns true if `path` is a FIFO.
bool IsFifo(const std::string& path);

// Returns true if `path` exists and this process may read it.
bool IsReadable(const std::string& path);

}  // namespace perfkit::sys
