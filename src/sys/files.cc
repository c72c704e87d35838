// Reads files through the table of system calls, folders through libc.
#include "src/sys/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "src/base/number.h"

namespace perfkit::sys {
namespace {

absl::Status ReadError(const char* what, const std::string& path, int error) {
  return absl::ErrnoToStatus(error, absl::StrFormat("cannot %s %s", what, path));
}

}  // namespace

absl::Status WithDescriptorRemedy(const absl::Status& error) {
  if (!absl::IsResourceExhausted(error)) return error;
  return {error.code(), absl::StrFormat("%s. Remedy: %s.", error.message(), kMoreDescriptors)};
}

bool IsMounted(KernelFiles kind, const std::string& folder) {
  return InodeOf(folder + (kind == KernelFiles::kProc ? "/self" : "/bus")).has_value();
}

absl::Status WithMountRemedy(const absl::Status& error, KernelFiles kind, const std::string& folder) {
  if (!absl::IsNotFound(error) || IsMounted(kind, folder)) return error;
  const char* const type = kind == KernelFiles::kProc ? "proc" : "sysfs";
  return {error.code(),
          absl::StrFormat("%s. Remedy: as root: mount -t %s %s %s.", error.message(), type, type, folder)};
}

OwnedFd OpenToRead(const char* path) { return OwnedFd(kernel().open(path, O_RDONLY)); }

absl::StatusOr<std::string> ReadToEnd(const OwnedFd& fd, const std::string& path, size_t most) {
  std::string text;
  while (true) {
    // Not on the stack, which may be a fiber's.
    constexpr size_t kRoom = 16 << 10;
    const size_t before = text.size();
    text.resize(before + kRoom);
    const ssize_t got = RetryInterrupted([&] { return kernel().read(fd.get(), text.data() + before, kRoom); });
    if (got < 0) return ReadError("read", path, errno);
    text.resize(before + static_cast<size_t>(got));
    if (got == 0) return text;
    if (text.size() > most) return absl::OutOfRangeError(absl::StrFormat("%s is larger than %d bytes", path, most));
  }
}

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t most) {
  const OwnedFd fd = OpenToRead(path.c_str());
  return fd ? ReadToEnd(fd, path, most) : ReadError("open", path, errno);
}

absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (folder == nullptr) return ReadError("list", path, errno);
  std::vector<std::string> names;
  errno = 0;  // readdir leaves it at 0 at the end of the folder.
  while (const dirent* entry = ::readdir(folder.get())) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
    errno = 0;
  }
  if (errno != 0) return ReadError("list", path, errno);
  std::sort(names.begin(), names.end());
  return names;
}

// The descriptor of the list itself is closed when the others are looked at.
absl::StatusOr<uint64_t> CountDescriptors(uint64_t limit, const std::string& proc) {
  const absl::StatusOr<std::vector<std::string>> names = ListFolder(proc + "/self/fd");
  if (!names.ok()) return names.status();
  const auto count = std::ranges::count_if(*names, [limit](const std::string& name) {
    const std::optional<int> fd = base::ParseNumber<int>(name);
    return fd && static_cast<uint64_t>(*fd) < limit && kernel().fcntl(*fd, F_GETFD, 0) >= 0;
  });
  return static_cast<uint64_t>(count);
}

std::vector<Subfolder> ListSubfolders(const std::string& path) {
  std::vector<Subfolder> subfolders;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (folder == nullptr) return subfolders;
  while (const dirent* entry = ::readdir(folder.get())) {
    std::string name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") subfolders.push_back({std::move(name), entry->d_ino});
  }
  return subfolders;
}

std::optional<uint64_t> InodeOf(const std::string& path) {
  const OwnedFd fd(kernel().open(path.c_str(), O_PATH));
  struct stat about;
  if (!fd || kernel().fstat(fd.get(), &about) != 0) return std::nullopt;
  return about.st_ino;
}

std::string LinkTarget(const std::string& path) {
  char target[4096];
  const ssize_t size = ::readlink(path.c_str(), target, sizeof(target));
  return size > 0 ? std::string(target, static_cast<size_t>(size)) : "";
}

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::optional<uid_t> OwnerOf(const std::string& path) {
  const OwnedFd fd(kernel().open(path.c_str(), O_PATH));
  struct stat about;
  if (!fd || kernel().fstat(fd.get(), &about) != 0) return std::nullopt;
  return about.st_uid;
}

bool IsFifo(const std::string& path) {
  const OwnedFd fd(kernel().open(path.c_str(), O_PATH));
  struct stat about;
  return fd && kernel().fstat(fd.get(), &about) == 0 && S_ISFIFO(about.st_mode);
}

bool IsReadable(const std::string& path) { return ::access(path.c_str(), R_OK) == 0; }

}  // namespace perfkit::sys
