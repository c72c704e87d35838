// Writes and reads captures. Reading only checks that the sizes fit, because this program itself has written the file.
#include "bench/unwind/capture_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

namespace bench {
namespace {

struct Head {
  char magic[8] = {'U', 'N', 'W', 'I', 'N', 'D', '0', '1'};
  perfkit::AttrBits bits;
};

absl::Status Failure(const std::string& path) { return absl::ErrnoToStatus(errno, path); }

constexpr uint64_t kAbi64 = 2;  // PERF_SAMPLE_REGS_ABI_64

// Returns true if the sample has a stack to unwind.
bool HasStack(const perfkit::Sample& sample) {
  return sample.task() && sample.user_registers().abi == kAbi64 && !sample.user_stack().bytes.empty();
}

}  // namespace

absl::StatusOr<CaptureWriter> CaptureWriter::Create(const std::string& path, const perfkit::SampleLayout& layout) {
  FILE* const file = fopen(path.c_str(), "wb");
  if (file == nullptr) return Failure(path);
  Head head;
  head.bits = layout.bits();
  fwrite(&head, sizeof(head), 1, file);
  return CaptureWriter(file);
}

void CaptureWriter::Write(const perfkit::RawRecord& record) { fwrite(record.data, record.size, 1, file_.get()); }

absl::Status CaptureWriter::Close() {
  const bool failed = ferror(file_.get()) != 0;
  return fclose(file_.release()) != 0 || failed ? Failure("a capture") : absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Capture>> Capture::Load(const std::string& path) {
  std::optional<FileBytes> file = FileBytes::Map(path, true);
  if (!file) return Failure(path);
  const perfkit::Bytes bytes = file->bytes();
  Head head;
  const Head wanted;
  if (bytes.size() < sizeof(head)) return absl::InvalidArgumentError("no capture");
  std::memcpy(&head, bytes.data(), sizeof(head));
  if (std::memcmp(head.magic, wanted.magic, sizeof(head.magic)) != 0) return absl::InvalidArgumentError("no capture");
  std::unique_ptr<Capture> capture(new Capture(std::move(*file), head.bits));
  perfkit::LinearReader reader(bytes.subspan(sizeof(head)));
  std::vector<perfkit::RawRecord> all;
  for (perfkit::RawRecord record; reader.Next(record);) all.push_back(record);
  if (!reader.rest().empty()) return absl::InvalidArgumentError("a capture that was cut off");
  capture->Take(all);
  if (capture->samples_.empty()) return absl::InvalidArgumentError("a capture without stacks");
  return capture;
}

void Capture::Take(const std::vector<perfkit::RawRecord>& all) {
  const auto stack_of = [&](const perfkit::RawRecord& record) {
    std::optional<perfkit::Sample> sample = perfkit::Sample::Parse(record, layout_);
    return sample && HasStack(*sample) ? sample : std::nullopt;
  };
  std::map<uint32_t, size_t> samples_of;
  for (const perfkit::RawRecord& record : all) {
    if (const auto sample = stack_of(record)) ++samples_of[sample->task()->pid];
  }
  const auto most = std::max_element(samples_of.begin(), samples_of.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == samples_of.end()) return;
  pid_ = most->first;
  for (const perfkit::RawRecord& record : all) {
    perfkit::Dispatch(
        record, layout_,
        perfkit::Overloaded{
            [&](const perfkit::CommRecord& comm) {
              if (comm.pid == pid_ && comm.exec) samples_.clear(), files_.clear();
            },
            [&](const perfkit::MmapRecord& map) {
              if (map.pid != pid_ || map.data) return;
              files_.push_back({std::string(map.name), map.address, map.address + map.length, map.file_offset});
            }});
    if (record.type != static_cast<uint32_t>(perfkit::RecordType::kSample)) {
      records_.push_back(record);
    } else if (const auto sample = stack_of(record); sample && sample->task()->pid == pid_) {
      records_.push_back(record);
      samples_.push_back(*sample);
    }
  }
}

}  // namespace bench
