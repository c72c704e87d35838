// Debian's perf as the oracle: it records a program with events of two kinds, and prints each record of its file with
// `perf script -D`. perfkit's text for the same bytes must be equal, record by record.
#include "tests/support/perf_data.h"

#include <catch2/catch.hpp>
#include <regex>
#include <sstream>

#include "absl/strings/str_format.h"
#include "tests/support/run.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"

namespace perfkit {
namespace {

// What perf prints of a record, and of the lines below it those with values.
struct Printed {
  std::string line;  // from its name on
  uint64_t time_ns = 0, size = 0;
  std::vector<uint64_t> chain, registers;
  std::string stack;
};

// By the record's offset in the file.
std::map<uint64_t, Printed> ParsePrinted(const std::string& text) {
  static const std::regex kRecord(R"(^(?:-?\d+ )?(\d+) (0x[0-9a-f]+) \[(0x[0-9a-f]+)\]: (PERF_RECORD_.*)$)");
  static const std::regex kChain(R"(^\.\.\.\.\. +\d+: ([0-9a-f]{16})$)");
  static const std::regex kRegister(R"(^\.\.\.\. [A-Z0-9]+ +0x([0-9a-f]{16})$)");
  static const std::regex kStack(R"(^\.\.\. ustack: size (\d+).*$)");
  std::map<uint64_t, Printed> records;
  Printed* last = nullptr;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    // Most lines are a dump of the bytes.
    if (line.size() < 2 || line.starts_with(".  ") || line.starts_with(". .")) continue;
    if (std::regex_match(line, match, kRecord)) {
      last = &records[std::stoull(match[2], nullptr, 16)];
      *last = {.line = match[4], .time_ns = std::stoull(match[1]), .size = std::stoull(match[3], nullptr, 16)};
    } else if (last != nullptr && std::regex_match(line, match, kChain)) {
      last->chain.push_back(std::stoull(match[1], nullptr, 16));
    } else if (last != nullptr && std::regex_match(line, match, kRegister)) {
      last->registers.push_back(std::stoull(match[1], nullptr, 16));
    } else if (last != nullptr && std::regex_match(line, match, kStack)) {
      last->stack = match[1];
    }
  }
  return records;
}

// As printf's %#x: 0 has no prefix.
std::string Hex(uint64_t value) { return value == 0 ? "0" : absl::StrFormat("0x%x", value); }

// perfkit's half: the same lines, as perf formats them (tools/perf/util/event.c, session.c).
std::string Format(const MmapRecord& map) {
  const auto bit = [&](uint32_t mask, char c) { return (map.protection & mask) != 0 ? c : '-'; };
  return absl::StrFormat("PERF_RECORD_MMAP2 %d/%d: [%s(%s) @ %s %02x:%02x %d %d]: %c%c%c%c %s",
                         static_cast<int>(map.pid), static_cast<int>(map.tid), Hex(map.address), Hex(map.length),
                         Hex(map.file_offset), map.device_major, map.device_minor, map.inode, map.inode_generation,
                         bit(1, 'r'), bit(2, 'w'), bit(4, 'x'), (map.flags & 1) != 0 ? 's' : 'p',
                         std::string(map.name));
}
std::string Format(const CommRecord& comm) {
  return absl::StrFormat("PERF_RECORD_COMM%s: %s:%d/%d", comm.exec ? " exec" : "", std::string(comm.name),
                         static_cast<int>(comm.pid), static_cast<int>(comm.tid));
}
std::string Format(const TaskRecord& task) {
  return absl::StrFormat("(%d:%d):(%d:%d)", task.pid, task.tid, task.parent_pid, task.parent_tid);
}
std::string Format(const SwitchRecord& change) {
  return absl::StrFormat("PERF_RECORD_SWITCH %s%s", change.out ? "OUT" : "IN", change.preempted ? " preempt" : "");
}
std::string Format(const Sample& sample, uint16_t misc) {
  return absl::StrFormat("PERF_RECORD_SAMPLE(IP, 0x%x): %d/%d: %s period: %d addr: %s", misc, sample.task()->pid,
                         sample.task()->tid, Hex(*sample.ip()), *sample.period(), Hex(*sample.address()));
}

// Compares records with what was printed, and keeps count.
class Comparison {
 public:
  explicit Comparison(const std::map<uint64_t, Printed>& printed) : printed_(printed) {}

  void Compare(const RawRecord& record, const SampleLayout& layout, uint64_t offset) {
    const auto found = printed_.find(offset);
    if (found == printed_.end()) FAIL("perf prints no record at " << offset);
    const Printed& printed = found->second;
    INFO(printed.line);
    CHECK(printed.size == record.size);
    ++records;
    constexpr uint32_t kFirstOfPerf = 64;  // types of the tool's own
    if (record.type >= kFirstOfPerf) return;
    if (const auto time = layout.TimeOf(record); time && *time != 0) CHECK(*time == printed.time_ns);
    const bool fits = Dispatch(
        record, layout,
        Overloaded{
            [&](const Sample& sample) { CompareSample(sample, record.misc, printed); },
            [&](const MmapRecord& map) { CompareLine(Format(map), printed); },
            [&](const CommRecord& comm) { CompareLine(Format(comm), printed); },
            [&](const ForkRecord& task) { CompareLine("PERF_RECORD_FORK" + Format(task), printed); },
            [&](const ExitRecord& task) { CompareLine("PERF_RECORD_EXIT" + Format(task), printed); },
            [&](const SwitchRecord& change) { CompareLine(Format(change), printed); },
            [&](const RawRecord& raw) { CHECK(printed.line.find(RecordTypeName(raw.type)) != std::string::npos); }});
    CHECK(fits);
  }

  size_t records = 0, samples = 0, chain_words = 0, registers = 0, lines = 0;

 private:
  void CompareLine(const std::string& line, const Printed& printed) {
    ++lines;
    CHECK(printed.line.substr(0, printed.line.find_last_not_of(' ') + 1) == line);
  }
  void CompareSample(const Sample& sample, uint16_t misc, const Printed& printed) {
    ++samples;
    CompareLine(Format(sample, misc), printed);
    CHECK(sample.rest().empty());
    const Words chain = sample.chain().words(), values = sample.user_registers().values;
    CHECK(std::vector<uint64_t>(chain.begin(), chain.end()) == printed.chain);
    CHECK(std::vector<uint64_t>(values.begin(), values.end()) == printed.registers);
    CHECK((printed.stack.empty() || std::to_string(sample.user_stack().bytes.size()) == printed.stack));
    chain_words += chain.size();
    registers += values.size();
  }
  const std::map<uint64_t, Printed>& printed_;
};

// Records a program by perf with these options, and compares the file with what perf prints of it.
std::optional<Comparison> RecordAndCompare(const std::string& options, std::string& why) {
  static std::map<uint64_t, Printed> printed;
  const testing::TempFolder folder;
  const std::string file = folder.path() + "/perf.data";
  const testing::Run recorded =
      testing::RunCommand("perf record -B " + options + " -o " + file + " -- ls -R /usr/include/linux");
  if (recorded.exit_code != 0) {
    why = "perf record: " + recorded.output.substr(0, 200);
    return std::nullopt;
  }
  const testing::Run script = testing::RunCommand("perf script -D -i " + file + " 2>/dev/null");
  REQUIRE(script.exit_code == 0);
  printed = ParsePrinted(script.output);
  const std::optional<testing::PerfData> data = testing::PerfData::Read(file);
  REQUIRE(data);
  CHECK(data->events() == 2);
  Comparison comparison(printed);
  LinearReader reader(data->records());
  RawRecord record;
  while (reader.Next(record)) {
    const auto in_section = static_cast<uint64_t>(record.data - data->records().data());
    comparison.Compare(record, data->LayoutOf(record), data->records_offset() + in_section);
  }
  CHECK(reader.rest().empty());
  return comparison;
}

TEST_CASE("a perf.data file with call chains decodes to what perf prints", "[perf_data]") {
  std::string why;
  const auto compared = RecordAndCompare("-e cpu-clock:u,page-faults:u -c 20000 -g -d -T -P --sample-cpu", why);
  if (!compared) SKIP_TEST(why);
  CHECK(compared->samples > 20);
  CHECK(compared->chain_words > 40);
  CHECK(compared->lines > compared->samples + 10);
}

TEST_CASE("a perf.data file with registers, stacks and switches decodes to what perf prints", "[perf_data]") {
  std::string why;
  const auto compared =
      RecordAndCompare("-e cpu-clock:u,page-faults:u -c 20000 --call-graph dwarf,512 -d -T -P --switch-events", why);
  if (!compared) SKIP_TEST(why);
  CHECK(compared->samples > 20);
  CHECK(compared->registers > 20 * 9);
  CHECK(compared->records > compared->samples);
}

}  // namespace
}  // namespace perfkit
