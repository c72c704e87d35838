// One pread at offset 0 of the open file makes the kernel write its account anew (fs/proc/base.c, do_io_accounting;
// fs/seq_file.c, seq_read_iter). The account is of the thread alone and needs no right. Each system call adds its
// bytes when it ends (fs/read_write.c, add_rchar and add_wchar), so that the next pread finds those of this one.
// perfkit knows what it has read, and subtracts it.
#include "src/count/thread_io.h"

#include <errno.h>

#include <charconv>

#include "absl/strings/str_format.h"
#include "src/sys/files.h"
#include "src/sys/read.h"

namespace perfkit::count {
namespace {

constexpr char kPath[] = "/proc/thread-self/io";
// Two lines with the largest numbers have 56 bytes.
constexpr size_t kTwoLines = 64;
constexpr int kMaxTries = 8;  // of a read that signal handlers disturb

// Removes "label: number\n" from the front of `text`. Returns false if that is not there.
bool TakeLine(std::string_view& text, std::string_view label, uint64_t& number) noexcept {
  if (!text.starts_with(label)) return false;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data() + label.size(), end, number);
  if (error != std::errc() || after == end || *after != '\n') return false;
  text.remove_prefix(static_cast<size_t>(after + 1 - text.data()));
  return true;
}

// Returns why the file could not be opened: by errno.
absl::Status OpenError(int error, std::string_view asked) {
  std::string_view remedy = "use a kernel with CONFIG_TASK_IO_ACCOUNTING, and mount /proc";
  if (error == EACCES || error == EPERM) remedy = "let the process be dumpable (man 2 prctl), or permit the file";
  if (error == EMFILE || error == ENFILE) remedy = sys::kMoreDescriptors;
  const absl::Status status = absl::ErrnoToStatus(error, "");
  return {status.code(), absl::StrFormat("%s: %s cannot be opened: %s. Remedy: %s.", asked, kPath,
                                         status.message().substr(status.message().find_first_not_of(": ")), remedy)};
}

}  // namespace

bool ParseIoBytes(std::string_view text, IoBytes& bytes) noexcept {
  return TakeLine(text, "rchar: ", bytes.read) && TakeLine(text, "wchar: ", bytes.written);
}

absl::Status ThreadIo::Add(size_t index, bool read, std::string_view asked) {
  if (!file_) {
    sys::OwnedFd file = sys::OpenToRead(kPath);
    if (!file) return OpenError(errno, asked);
    file_ = std::move(file);
    IoBytes bytes;
    if (ReadBytes(bytes) < 0) {
      file_.Reset();
      return absl::UnavailableError(absl::StrFormat(
          "%s: %s has no count of bytes. Remedy: use a kernel with CONFIG_TASK_IO_ACCOUNTING.", asked, kPath));
    }
  }
  (read ? read_ : written_) |= 1u << index;
  return absl::OkStatus();
}

void ThreadIo::Read(Snapshot& now) const noexcept {
  IoBytes bytes;
  uint64_t own = 0;
  // A signal handler that reads counters in between adds to both accounts: then they do not belong together.
  for (int tries = 0;; ++tries) {
    own = sys::own_bytes_read;  // Before the read: the kernel's account has what was read before.
    const ssize_t got = ReadBytes(bytes);
    if (got > 0 && sys::own_bytes_read - own == static_cast<uint64_t>(got)) break;
    if (got > 0 && tries < kMaxTries) continue;
    now.missing |= read_ | written_;
    return;
  }
  for (uint32_t left = read_; left != 0; left &= left - 1) now.values[__builtin_ctz(left)] = bytes.read - own;
  for (uint32_t left = written_; left != 0; left &= left - 1) now.values[__builtin_ctz(left)] = bytes.written;
}

ssize_t ThreadIo::ReadBytes(IoBytes& bytes) const noexcept {
  char text[kTwoLines];
  const ssize_t got = sys::RetryInterrupted([&] { return sys::kernel().pread(file_.get(), text, sizeof(text), 0); });
  return got > 0 && ParseIoBytes({text, static_cast<size_t>(got)}, bytes) ? got : -1;
}

}  // namespace perfkit::count
