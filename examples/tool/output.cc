// Looks at errno after each write: stdio does not keep it, and a full buffer is lost with its error.
#include "output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tool {

void ReserveStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    const int wrong_mode = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;              // EBADF, as before
    if (fcntl(fd, F_GETFD) < 0) (void)open("/dev/null", wrong_mode | O_CLOEXEC);  // the lowest that is free: fd
  }
}

void Output::Check(bool ok) {
  if (ok || failed_) return;
  failed_ = true;
  fprintf(stderr, "%s: cannot write %s: %s\n", program_.c_str(), name_.c_str(), strerror(errno));
}

void Output::Write(std::string_view text) { Check(fwrite(text.data(), 1, text.size(), file_) == text.size()); }

void Output::Flush() { Check(fflush(file_) == 0); }

bool Output::Finish() {
  if (file_ == nullptr) return !failed_;
  Flush();
  if (file_ != stdout) Check(fclose(file_) == 0);
  file_ = nullptr;
  return !failed_;
}

bool PrintText(std::string_view program, std::string_view text) {
  Output output(program);
  output.Write(text);
  return output.Finish();
}

}  // namespace tool
