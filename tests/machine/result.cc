// The result of one program that ran in the test machine, as a test outside: prints its output, and ends with its exit
// code.
//
//   result FOLDER PROGRAM [REASON]...
//
// FOLDER was written by tests/machine/boot.cc. In a machine with a PMU, a skipped test means that no PMU was found,
// which is a failure: each line "SKIPPED: test: reason" must contain one of the REASONs that are valid there, too. If
// there was no machine, FOLDER/absent says why, and this prints it and returns 77.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace {

constexpr std::string_view kSkipped = "SKIPPED: ";
constexpr int kSkipCode = 77;

bool IsAllowed(std::string_view line, int argc, char** argv) {
  for (int i = 3; i < argc; ++i) {
    if (line.find(argv[i]) != std::string_view::npos) return true;
  }
  return false;
}

// Copies the output. Returns the number of skips that are not permitted.
int Print(std::ifstream& text, int argc, char** argv) {
  int forbidden = 0;
  for (std::string line; std::getline(text, line);) {
    std::printf("%s\n", line.c_str());
    if (line.starts_with(kSkipped) && !IsAllowed(line, argc, argv)) ++forbidden;
  }
  return forbidden;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: result FOLDER PROGRAM [REASON]...\n"), 1;
  const std::string folder = argv[1], program = argv[2];
  std::string reason;
  if (std::ifstream absent(folder + "/absent"); std::getline(absent, reason)) {
    std::printf("%.*sall tests: %s\n", static_cast<int>(kSkipped.size()), kSkipped.data(), reason.c_str());
    return kSkipCode;
  }
  std::ifstream text(folder + "/" + program + ".txt");
  const int forbidden = Print(text, argc, argv);
  int code = 1;
  if (!(std::ifstream(folder + "/" + program + ".code") >> code)) {
    std::printf("%s did not end\n", program.c_str());
    std::ifstream report(folder + "/report");
    Print(report, argc, argv);
    return 1;
  }
  if (forbidden > 0) {
    std::printf("%d tests skipped that have to run in this machine\n", forbidden);
    return 1;
  }
  return code;
}
