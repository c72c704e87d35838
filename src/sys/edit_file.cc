// Writes the new version to a second file, syncs it, and renames it over the old one. A rename replaces whatever has
// the name, as root even a device of /dev: so both names are checked to be those of regular files.
#include "src/sys/edit_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_format.h"
#include "src/sys/fd.h"
#include "src/sys/files.h"
#include "src/sys/kernel.h"
#include "src/sys/new_file.h"
#include "src/sys/regular_file.h"

namespace perfkit::sys {
namespace {

struct LockedFile {
  OwnedFd fd;
  mode_t mode = 0;
};

// Waits for the lock of the file at `path`. If its previous holder has put another file there meanwhile, waits for the
// lock of that one.
absl::StatusOr<LockedFile> Lock(const std::string& path) {
  while (true) {
    absl::StatusOr<OwnedFd> fd = OpenRegularFile(path, O_RDWR | O_CREAT);
    if (!fd.ok()) return WithFolderRemedy(fd.status(), path);
    struct flock whole {};
    whole.l_type = F_WRLCK;
    const auto argument = reinterpret_cast<unsigned long>(&whole);
    // A lock of this open file, not of the process: two threads exclude each other too (man fcntl, F_OFD_SETLKW).
    if (RetryInterrupted([&] { return kernel().fcntl(fd->get(), F_OFD_SETLKW, argument); }) != 0) {
      return FileError("lock", path);
    }
    const OwnedFd there(kernel().open(path.c_str(), O_PATH));
    if (!there && errno == ENOENT) continue;
    struct stat locked, named;
    if (!there || kernel().fstat(fd->get(), &locked) != 0 || kernel().fstat(there.get(), &named) != 0) {
      return FileError("look at", path);
    }
    if (locked.st_dev == named.st_dev && locked.st_ino == named.st_ino)
      return LockedFile{*std::move(fd), locked.st_mode};
  }
}

// Returns the path of the file itself if `path` is a symbolic link: a rename would replace the link.
std::string PathOf(const OwnedFd& fd, const std::string& path) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(absl::StrFormat("/proc/self/fd/%d", fd.get()).c_str(), target, sizeof(target));
  return size <= 0 || target[0] != '/' ? path : std::string(target, static_cast<size_t>(size));
}

// Creates the file of the new text. Its name is fixed, because only the holder of the lock writes it: one that exists
// was left by an editor that crashed, and is removed.
absl::StatusOr<NewFile> CreateNew(const std::string& path) {
  const std::string aside = path + ".new";
  absl::StatusOr<NewFile> file = NewFile::Create(aside, path, O_EXCL | O_DSYNC);
  if (!absl::IsAlreadyExists(file.status())) return file;
  const OwnedFd left(kernel().open(aside.c_str(), O_PATH | O_NOFOLLOW));
  if (!left) return FileError("look at", aside);
  if (absl::Status status = CheckRegular(left, aside, "remove it"); !status.ok()) return status;
  if (kernel().unlink(aside.c_str()) != 0) return FileError("remove", aside);
  return NewFile::Create(aside, path, O_EXCL | O_DSYNC);
}

absl::Status Replace(const std::string& path, const std::string& text, mode_t mode) {
  absl::StatusOr<NewFile> file = CreateNew(path);
  if (!file.ok()) return file.status();
  if (absl::Status status = file->SetMode(mode & 07777); !status.ok()) return status;
  if (absl::Status status = file->Write(text); !status.ok()) return status;
  return file->Commit();
}

}  // namespace

absl::Status EditFile(const std::string& path, const FileEdit& edit) {
  const absl::StatusOr<LockedFile> locked = Lock(path);
  if (!locked.ok()) return locked.status();
  const absl::StatusOr<std::string> old = ReadToEnd(locked->fd, path);
  if (!old.ok()) return old.status();
  const absl::StatusOr<std::string> edited = edit(*old);
  if (!edited.ok()) return edited.status();
  return Replace(PathOf(locked->fd, path), *edited, locked->mode);
}

}  // namespace perfkit::sys
