// What the tools print. Output that cannot be written is a failure of the tool, with its reason on stderr.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace tool {

// Opens /dev/null for those of stdin, stdout and stderr that are closed: no file that is opened later takes their
// place. Writing to them remains an error, and the tool's command finds them closed. Call it before anything is opened.
void ReserveStandardStreams();

class Output {
 public:
  // The standard output of `program`.
  explicit Output(std::string_view program) : Output(program, "the standard output", stdout) {}
  // Closes `file`, unless that is stdout.
  Output(std::string_view program, std::string_view name, FILE* file) : program_(program), name_(name), file_(file) {}
  ~Output() { Finish(); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void Write(std::string_view text);
  void Flush();

  // Flushes, and closes a file. Returns false if anything could not be written. The first error is on stderr then.
  bool Finish();

 private:
  void Check(bool ok);

  std::string program_, name_;
  FILE* file_;  // nullptr: closed
  bool failed_ = false;
};

// Prints a whole text to the standard output. Returns as Output::Finish.
bool PrintText(std::string_view program, std::string_view text);

}  // namespace tool
