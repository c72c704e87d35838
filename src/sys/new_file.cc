// Writes a file beside its destination and renames it. Each error names the file.
#include "src/sys/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "src/sys/kernel.h"
#include "src/sys/write_signals.h"

namespace perfkit::sys {
namespace {

// Returns the target of a symbolic link; "" if `path` is none.
std::string TargetOf(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(path.c_str(), target, sizeof(target));
  return size <= 0 ? "" : std::string(target, static_cast<size_t>(size));
}

// Returns the path that a chain of symbolic links ends with, for a link whose target does not exist.
std::string EndOfLinks(std::string path) {
  constexpr int kMaxLinks = 40;  // MAXSYMLINKS (include/linux/namei.h)
  for (int i = 0; i < kMaxLinks; ++i) {
    const std::string target = TargetOf(path);
    if (target.empty()) break;
    path = target.starts_with('/') ? target : path.substr(0, path.rfind('/') + 1) + target;
  }
  return path;
}

// What a name stands for: a file that is replaced as a whole, or something that is written directly.
struct Destination {
  std::string path;              // Of the file itself, if the name is a symbolic link: a rename would replace the link.
  std::optional<OwnedFd> fd{};   // A pipe, a terminal, another special file, or an open descriptor (/dev/stdout).
  std::optional<mode_t> mode{};  // Of the file that is replaced.
};

absl::StatusOr<Destination> Resolve(const std::string& path) {
  const OwnedFd there(kernel().open(path.c_str(), O_PATH));
  if (!there && errno == ELOOP) return FileError("open", path);
  if (!there) return Destination{EndOfLinks(path)};
  struct stat status {};
  if (kernel().fstat(there.get(), &status) != 0) return FileError("look at", path);
  const std::string target = TargetOf(path);
  const bool is_descriptor = target.starts_with("/proc/") || target.starts_with("/dev/fd/");
  if (S_ISREG(status.st_mode) && !is_descriptor) {
    const std::string real = TargetOf(absl::StrFormat("/proc/self/fd/%d", there.get()));
    return Destination{.path = target.empty() || !real.starts_with('/') ? path : real, .mode = status.st_mode & 0777};
  }
  if (S_ISDIR(status.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrFormat("cannot write %s: it is a folder. Remedy: choose the name of a file", path));
  }
  OwnedFd fd(kernel().open(path.c_str(), O_WRONLY | (is_descriptor ? O_APPEND : 0)));
  if (!fd) return FileError("open", path);
  return Destination{.path = path, .fd = std::move(fd)};
}

std::string FolderOf(const std::string& path) {
  const size_t name = path.rfind('/') + 1;  // 0 if there is none.
  return name == 0 ? "." : path.substr(0, std::max<size_t>(name - 1, 1));
}

bool IsMissing(const std::string& folder) {
  const OwnedFd fd(kernel().open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return !fd && errno == ENOENT;
}

// Creates a file beside `path` with an unused name: two programs may write the same file at once.
absl::StatusOr<NewFile> CreateAside(const std::string& path) {
  constexpr int kAttempts = 100;
  constexpr size_t kMaxPrefix = 200;        // A longer one could exceed NAME_MAX.
  const size_t name = path.rfind('/') + 1;  // 0 if there is none.
  absl::Status status;
  for (int i = 0; i < kAttempts; ++i) {
    const std::string aside = absl::StrFormat("%s.%d-%d.new", path.substr(0, name + kMaxPrefix), kernel().getpid(), i);
    absl::StatusOr<NewFile> file = NewFile::Create(aside, path, O_EXCL);
    if (file.ok()) return file;
    status = absl::Status(file.status().code(),
                          absl::StrFormat("cannot write %s: a new file is made in its folder, '%s', first: %s", path,
                                          FolderOf(path), std::string(file.status().message())));
    if (!absl::IsAlreadyExists(status)) break;
  }
  return WithFolderRemedy(status, path);
}

}  // namespace

absl::Status FileError(const char* what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrFormat("cannot %s %s", what, path));
}

absl::Status WithFolderRemedy(const absl::Status& status, const std::string& path) {
  const std::string folder = FolderOf(path);
  if (absl::IsNotFound(status) && IsMissing(folder)) {
    return absl::NotFoundError(
        absl::StrFormat("cannot write %s: its folder, '%s', does not exist. Remedy: create it", path, folder));
  }
  if (!absl::IsPermissionDenied(status)) return status;
  return absl::PermissionDeniedError(
      absl::StrFormat("%s. Remedy: choose a file and a folder that this user may write to", status.message()));
}

absl::Status WriteAll(int fd, const std::string& path, std::string_view bytes) {
  const WriteSignalGuard guard;
  while (!bytes.empty()) {
    const ssize_t wrote = RetryInterrupted([&] { return kernel().write(fd, bytes.data(), bytes.size()); });
    if (wrote == 0) errno = EIO;
    if (wrote <= 0) return FileError("write", path);
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return absl::OkStatus();
}

absl::StatusOr<NewFile> NewFile::Create(std::string aside, std::string path, int flags) {
  OwnedFd fd(kernel().open(aside.c_str(), O_WRONLY | O_CREAT | flags));
  if (!fd) return FileError("open", aside);
  return NewFile(std::move(fd), std::move(aside), std::move(path));
}

NewFile::NewFile(OwnedFd fd, std::string aside, std::string path)
    : fd_(std::move(fd)), aside_(std::move(aside)), path_(std::move(path)) {}

NewFile::NewFile(NewFile&& other) noexcept
    : fd_(std::move(other.fd_)), aside_(std::exchange(other.aside_, {})), path_(std::move(other.path_)) {}

NewFile::~NewFile() {
  if (!aside_.empty()) kernel().unlink(aside_.c_str());
}

absl::Status NewFile::SetMode(mode_t mode) {
  return kernel().fchmod(fd_.get(), mode) == 0 ? absl::OkStatus() : FileError("set the permissions of", aside_);
}

absl::Status NewFile::Write(std::string_view bytes) { return WriteAll(fd_.get(), aside_, bytes); }

absl::Status NewFile::Commit() {
  if (kernel().rename(aside_.c_str(), path_.c_str()) != 0) return FileError("replace", path_);
  aside_.clear();
  return absl::OkStatus();
}

absl::Status WriteFile(const std::string& path, absl::FunctionRef<absl::Status(ByteSink)> write) {
  if (path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrFormat("cannot write '%s': the name contains a zero byte", absl::CEscape(path)));
  }
  absl::StatusOr<Destination> destination = Resolve(path);
  if (!destination.ok()) return destination.status();
  if (destination->fd) {
    return write([&](std::string_view bytes) { return WriteAll(destination->fd->get(), path, bytes); });
  }
  absl::StatusOr<NewFile> file = CreateAside(destination->path);
  if (!file.ok()) return file.status();
  absl::Status status;
  if (destination->mode) status = file->SetMode(*destination->mode);
  if (status.ok()) status = write([&](std::string_view bytes) { return file->Write(bytes); });
  return status.ok() ? file->Commit() : status;
}

}  // namespace perfkit::sys
