// A recorded run of a program: the bits of its layout, and the records from its rings, one after the other. The file
// format is this benchmark's own; it is written and read by the same build on the same machine.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/unwind/file_bytes.h"
#include "perfkit/sample.h"

namespace bench {

class CaptureWriter {
 public:
  static absl::StatusOr<CaptureWriter> Create(const std::string& path, const perfkit::SampleLayout& layout);

  void Write(const perfkit::RawRecord& record);
  // Returns the error of writing.
  absl::Status Close();

 private:
  struct Closer {
    void operator()(FILE* file) const { fclose(file); }
  };
  explicit CaptureWriter(FILE* file) : file_(file) {}

  std::unique_ptr<FILE, Closer> file_;
};

// A mapping of code in a process. A file that is mapped in two pieces occurs twice.
struct MappedFile {
  std::string path;
  uint64_t begin = 0, end = 0;
  uint64_t offset = 0;
};

// The stacks of one process, the one with the most samples, from its exec on; and the mappings of all processes.
class Capture {
 public:
  static absl::StatusOr<std::unique_ptr<Capture>> Load(const std::string& path);

  const perfkit::SampleLayout& layout() const { return layout_; }
  pid_t pid() const { return static_cast<pid_t>(pid_); }
  // The samples of the process, and the side band of all processes, in order.
  const std::vector<perfkit::RawRecord>& records() const { return records_; }
  const std::vector<perfkit::Sample>& samples() const { return samples_; }
  // The mappings of the process at its end.
  const std::vector<MappedFile>& files() const { return files_; }

 private:
  Capture(FileBytes file, const perfkit::AttrBits& bits) : file_(std::move(file)), layout_(bits) {}
  void Take(const std::vector<perfkit::RawRecord>& all);

  FileBytes file_;
  perfkit::SampleLayout layout_;
  uint32_t pid_ = 0;
  std::vector<perfkit::RawRecord> records_;
  std::vector<perfkit::Sample> samples_;
  std::vector<MappedFile> files_;
};

}  // namespace bench
