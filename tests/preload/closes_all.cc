// A program that closes all descriptors, and opens files of its own, as daemons do. Writes "text" to each of 200 files.
//
//   closes_all FOLDER
//
// Exit code 1: a forked child has not all of the files open. 2: a file can't be opened.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

// Returns whether a forked child has all files.
bool ForkedChildHas(const std::vector<FILE*>& files) {
  const pid_t child = fork();
  if (child == 0) {
    for (FILE* const file : files) {
      if (fcntl(fileno(file), F_GETFD) < 0) _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

int main(int, char** argv) {
  for (int fd = 3; fd < 1024; ++fd) close(fd);
  std::vector<FILE*> files;
  for (int i = 0; i < 200; ++i) {
    files.push_back(std::fopen((std::string(argv[1]) + "/" + std::to_string(i)).c_str(), "w"));
    if (files.back() == nullptr) return 2;
    std::fprintf(files.back(), "text");
  }
  return ForkedChildHas(files) ? 0 : 1;  // The texts are written by exit.
}
