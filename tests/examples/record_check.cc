// Runs record as anyone would: its words against what was asked, its accounting, and its profile against perf's.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/examples/report_text.h"
#include "tests/support/measurement.h"
#include "tests/support/run.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"

namespace {

using perfkit::testing::NumberIn;
using perfkit::testing::ReportText;
using perfkit::testing::Run;
using perfkit::testing::RunCommand;

// A command of two processes that take some tenths of a second of CPU time each, on however busy a machine.
const std::string kWork = " sh -c 'work() { i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; }; work & work; wait'";

Run Record(const std::string& arguments) { return RunCommand("timeout 60 " RECORD " " + arguments); }

// What the accounting says of an event: "# page-faults:u    137      137      137     0          -".
struct EventLine {
  uint64_t samples = 0, counted = 0, lost = 0;

  EventLine(const std::string& output, const std::string& event) {
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string word;
      std::vector<std::string> all;
      while (words >> word) {
        const bool is_unit =
            word == ">=" || word == "ns" || word == "us" || word == "ms" || word == "s" || word == "only)";
        if (!is_unit && word != "(user") all.push_back(word);
      }
      if (all.size() < 6 || all[0] != "#" || all[1] != event) continue;
      samples = NumberIn(all[3]), counted = NumberIn(all[4]), lost = NumberIn(all[5]);
      return;
    }
  }
};

bool Says(const Run& run, const std::string& text) { return run.output.find(text) != std::string::npos; }

TEST_CASE("a wrong option is answered with the nearest one", "[record]") {
  const Run run = Record("--durration 3");
  CHECK(run.exit_code == 2);
  CHECK(Says(run, "'--durration'; did you mean '--duration'?"));
  CHECK(Says(Record("--call-grph fp"), "did you mean '--call-graph'?"));
  CHECK(Says(Record("--seconds 3"), "unknown option '--seconds'; record --help lists all"));
}

TEST_CASE("values that are none are refused with what is wanted", "[record]") {
  for (const char* arguments : {"-f 0",
                                "-f 10x",
                                "-c 0",
                                "-p 12,x",
                                "-t ,",
                                "--cpu 3-1",
                                "-m 3",
                                "-m 0",
                                "--duration 0",
                                "--call-graph dwarff",
                                "--call-graph dwarf,7",
                                "--call-graph fp,3",
                                "--top 0",
                                "-e",
                                "-e {a",
                                "-j sideways",
                                "--sort name",
                                "--sort thread,",
                                "--sort ''",
                                "--percent-limit -1",
                                "--percent-limit 101",
                                "-o"}) {
    const Run run = Record(arguments);
    INFO(arguments << ": " << run.output);
    CHECK(run.exit_code == 2);
    CHECK(Says(run, " wants "));
  }
  CHECK(Says(Record("--no-inherit=1"), "takes no value"));
  CHECK(Says(Record("-f 10 -c 10"), "exclude each other"));
  CHECK(Says(Record("-a -p 1"), "say one of them"));
  CHECK(Record("--help").exit_code == 0);
}

TEST_CASE("an event that there is not is answered with the nearest one", "[record]") {
  const Run run = Record("-e page-fault5 true");
  CHECK(run.exit_code == 2);
  CHECK(Says(run, "'page-faults'"));
}

TEST_CASE("what the command returns, record returns", "[record]") {
  CHECK(Record("-e cpu-clock:u sh -c 'exit 7'").exit_code == 7);
  CHECK(Record("-e cpu-clock:u sh -c 'kill -TERM $$'").exit_code == 128 + 15);
  const Run run = Record("-e cpu-clock:u /no/such/program");
  CHECK(run.exit_code == 127);
  CHECK(Says(run, "/no/such/program"));
}

TEST_CASE("of a command's page faults every one is told, from its exec on", "[record]") {
  const Run run = Record("-e page-faults:u --percent-limit 0 --top 10000 ls -R /usr/include/linux | grep '^#\\|^ '");
  INFO(run.output.substr(0, 4000));
  const EventLine faults(run.output, "page-faults:u");
  CHECK(faults.samples > 0);
  CHECK(faults.samples + faults.lost == faults.counted);
  CHECK(Says(run, "_dl_start"));                      // the loader's faults are the first
  CHECK_FALSE(Says(run, "record::"));                 // record's own would be before the exec
  CHECK(run.output.find('\r') == std::string::npos);  // a progress line is for terminals
}

TEST_CASE("record names what its own threads do, in zstd and in the kernel", "[record]") {
  const Run run = Record("--duration 2 --sort thread,function");
  INFO(run.output);
  REQUIRE(run.exit_code == 0);
  CHECK(Says(run, "ZSTD_"));
  CHECK(Says(run, "# functions by thread of cpu-clock, by self"));
  CHECK(Says(run, "# record: "));
  CHECK(EventLine(run.output, "cpu-clock").samples == ReportText(run.output).samples());
}

TEST_CASE("stacks come as asked", "[record]") {
  const std::string how = "-e cpu-clock:u --call-graph ";
  const Run dumps = Record(how + "dwarf,32768" + kWork), pointers = Record(how + "fp -f 500 -m 64" + kWork),
            none = Record(how + "no" + kWork);
  INFO(dumps.output << pointers.output << none.output);
  if (Says(dumps, "stacks: dumps")) {
    CHECK(ReportText(dumps.output).QualityShare("whole") > 50);
  } else {
    CHECK(Says(dumps, "perfkit::dwarf is not linked"));
  }
  CHECK(Says(dumps, "# call tree of cpu-clock:u, callers first"));
  CHECK(Says(pointers, "# stacks: frame pointers"));
  CHECK(ReportText(pointers.output).QualityShare("part") > 0);
  CHECK(Says(none, "# stacks: none"));
  CHECK(ReportText(none.output).calls().empty());
}

// Each share is rounded to a hundredth.
double Rounding(size_t shares) { return 0.01 + 0.005 * static_cast<double>(shares); }

TEST_CASE("whatever a table is sorted by, its lines add up to the whole", "[record]") {
  for (const char* keys : {"module,function", "function", "module", "line", "thread", "thread,module", "line,thread"}) {
    const Run run = Record("-g --percent-limit 0 --top 1000000 --sort " + std::string(keys) + kWork);
    INFO(keys << "\n" << run.output);
    REQUIRE(run.exit_code == 0);
    const ReportText report(run.output);
    REQUIRE(report.samples() > 0);
    CHECK(report.RowSamples() == report.samples());
    CHECK(report.samples() == EventLine(run.output, "cpu-clock").samples);
    CHECK(std::abs(report.RowSelf() - 100) <= Rounding(report.rows().size()));
    CHECK(std::abs(report.RootTotal() - 100) <= Rounding(report.calls().size()));
    CHECK(std::abs(report.CallSelf() - 100) <= Rounding(report.calls().size()));
    for (size_t i = 1; i < report.rows().size(); ++i) CHECK(report.rows()[i - 1].self >= report.rows()[i].self);
  }
}

TEST_CASE("with children a table is sorted by total, and from the bottom up the roots are the whole", "[record]") {
  const Run run = Record("-g --children --bottom-up --percent-limit 0 --top 1000000" + kWork);
  INFO(run.output);
  REQUIRE(run.exit_code == 0);
  const ReportText report(run.output);
  REQUIRE(report.samples() > 0);
  CHECK(Says(run, "# functions of cpu-clock, by total"));
  CHECK(Says(run, "from the sampled functions to their callers"));
  for (size_t i = 1; i < report.rows().size(); ++i) CHECK(report.rows()[i - 1].total >= report.rows()[i].total);
  for (const ReportText::Row& row : report.rows()) CHECK(row.total >= row.self);
  CHECK(std::abs(report.RootTotal() - 100) <= Rounding(report.calls().size()));
}

TEST_CASE("what is below the limit is left out, and counted", "[record]") {
  const Run run = Record("-g --percent-limit 10" + kWork);
  INFO(run.output);
  REQUIRE(run.exit_code == 0);
  const ReportText report(run.output);
  for (const ReportText::Row& row : report.rows()) CHECK(row.self >= 9.995);
  for (const ReportText::Call& call : report.calls()) CHECK(call.total >= 9.995);
  CHECK(Says(run, " more functions, together "));
}

TEST_CASE("each event has a report, and the accounting is there once", "[record]") {
  const Run run = Record("-e cpu-clock:u,page-faults:u --percent-limit 0 --top 100000" + kWork);
  INFO(run.output);
  REQUIRE(run.exit_code == 0);
  const size_t head = run.output.find("# event ");
  CHECK(head != run.output.npos);
  CHECK(run.output.find("# event ", head + 1) == run.output.npos);
  const ReportText faults(run.output, "page-faults:u");
  CHECK(faults.samples() == EventLine(run.output, "page-faults:u").samples);
  CHECK(faults.RowSamples() == faults.samples());
}

// Sums of the numbers before the colons, in the samples of `go tool pprof -raw`.
std::vector<uint64_t> PprofSums(const std::string& raw) {
  std::vector<uint64_t> sums;
  bool in_samples = false;
  std::istringstream lines(raw);
  for (std::string line; std::getline(lines, line);) {
    if (line == "Locations") break;
    in_samples = in_samples || line == "Samples:";
    const size_t colon = line.find(':');
    if (!in_samples || colon == line.npos || line.find_first_not_of(" 0123456789") != colon) continue;
    std::istringstream numbers(line.substr(0, colon));
    size_t i = 0;
    for (uint64_t number = 0; numbers >> number; ++i) {
      if (i == sums.size()) sums.push_back(0);
      sums[i] += number;
    }
  }
  return sums;
}

uint64_t FoldedSum(const std::string& path) {
  uint64_t sum = 0;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) sum += std::strtoull(&line[line.rfind(' ') + 1], nullptr, 10);
  return sum;
}

TEST_CASE("what -o writes is what the report says, as other programs read it", "[record]") {
  const perfkit::testing::TempFolder folder;
  const std::string base = folder.path() + "/out";
  const Run run = Record("-c 1000000 -g -o " + base + ".folded -o " + base + ".pb.gz" + kWork);
  INFO(run.output);
  if (run.exit_code == 2 && Says(run, "-o wants a name")) SKIP_TEST("perfkit::exporters is not linked");
  REQUIRE(run.exit_code == 0);
  const uint64_t samples = ReportText(run.output).samples();
  REQUIRE(samples > 0);
  CHECK(FoldedSum(base + ".folded") == samples * 1'000'000);
  if (RunCommand("go version").exit_code != 0) SKIP_TEST("go is not here");
  const Run raw = RunCommand("HOME=" + folder.path() + " go tool pprof -raw -symbolize=none " + base + ".pb.gz");
  INFO(raw.output.substr(0, 2000));
  REQUIRE(raw.exit_code == 0);
  CHECK(PprofSums(raw.output) == std::vector<uint64_t>{samples, samples * 1'000'000});
}

TEST_CASE("a profile that cannot be written is an error with its reason", "[record]") {
  const Run extension = Record("-o out.nonsense true");
  CHECK(extension.exit_code == 2);
  CHECK(Says(extension, "one of the extensions .folded"));
  const Run folder = Record("-e cpu-clock:u -o /no/such/folder/out.folded true");
  CHECK(folder.exit_code == 1);
  CHECK(Says(folder, "/no/such/folder/out.folded"));
}

TEST_CASE("another process is sampled, and its functions are named", "[record]") {
  const Run run = RunCommand("sh -c 'while :; do :; done' >/dev/null 2>&1 & timeout 60 " RECORD
                             " -e cpu-clock:u --no-inherit --duration 1 -p $!; kill $!");
  INFO(run.output);
  CHECK(EventLine(run.output, "cpu-clock:u").samples > 0);
  CHECK(Says(run, "sh"));
  CHECK_FALSE(Says(run, "[unknown]"));
}

TEST_CASE("record ends with the process that it samples", "[record]") {
  Run run;
  for (const char* seconds : {"1", "4", "16"}) {  // longer if it had ended before record saw it
    run = RunCommand("sleep " + std::string(seconds) +
                     " >/dev/null 2>&1 & timeout 60 " RECORD " -e page-faults:u -p $!,$!");
    if (run.exit_code == 0 || run.exit_code == 124) break;
  }
  INFO(run.output);
  CHECK(run.exit_code == 0);
}

// The number and the unit after `words`, in nanoseconds.
double NanosecondsAfter(const std::string& text, const std::string& words) {
  const size_t at = text.find(words);
  if (at == text.npos) return -1;
  std::istringstream stream(text.substr(at + words.size()));
  double number = 0;
  std::string unit;
  stream >> number >> unit;
  return number * (unit.starts_with("ns") ? 1 : unit.starts_with("us") ? 1e3 : unit.starts_with("ms") ? 1e6 : 1e9);
}

TEST_CASE("reading the rings takes one CPU at most, of however short a run", "[record]") {
  const Run run = Record("-e page-faults:u true");
  INFO(run.output);
  const double cost_ns = NanosecondsAfter(run.output, "# cost: "), run_ns = NanosecondsAfter(run.output, "# true: ");
  CHECK(cost_ns > 0);
  CHECK(cost_ns <= run_ns);
}

TEST_CASE("the whole system is sampled by those who may", "[record]") {
  const Run run = Record("-a --cpu 0 --duration 1 --top 1000 --percent-limit 0");
  INFO(run.output);
  if (run.exit_code != 0) {
    CHECK(run.exit_code == 2);
    CHECK(Says(run, "erm"));  // permission, permitted
    SKIP_TEST("this user may not: " + run.output.substr(0, 100));
  }
  CHECK(Says(run, "# whole CPUs: "));
  if (!Says(run, "[kernel]")) SKIP_TEST("no sample of CPU 0 was in the kernel");
}

// How many samples each function has, or how many nanoseconds.
struct Samples {
  std::map<std::string, uint64_t> by_function;
  uint64_t all = 0;

  void Add(const std::string& function, uint64_t count) { by_function[function] += count, all += count; }
  double PercentOf(const std::string& function) const {
    const auto found = by_function.find(function);
    return found == by_function.end() ? 0 : 100 * static_cast<double>(found->second) / static_cast<double>(all);
  }
};

// "thread-4711;main;leaf 3000000": what has no name is one function, as in AddPerfReport.
void AddFolded(const std::string& path, Samples& samples) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t weight = line.rfind(' '), leaf = line.rfind(';', weight) + 1;
    const std::string name = line.substr(leaf, weight - leaf);
    samples.Add(name.starts_with('[') ? "(no" : name, std::strtoull(&line[weight + 1], nullptr, 10));
  }
}

// "    44.79% |3999 |record  |[.] name"; what has no name perf lists address by address.
void AddPerfReport(const std::string& report, Samples& samples) {
  std::istringstream lines(report);
  for (std::string line; std::getline(lines, line);) {
    char name[512] = "";
    double percent = 0;
    unsigned long long count = 0;
    if (sscanf(line.c_str(), " %lf%% | %llu |%*[^|]|[%*c] %511s", &percent, &count, name) != 3) continue;
    samples.Add(std::string(name).starts_with("0x") ? "(no" : name, count);
  }
}

// The largest difference over all functions that have more than 2 % in either, in points.
double LargestDifference(const Samples& ours, const Samples& theirs, std::string& where) {
  double largest = 0;
  std::map<std::string, uint64_t> names = ours.by_function;
  names.insert(theirs.by_function.begin(), theirs.by_function.end());
  for (const auto& [name, unused] : names) {
    const double a = ours.PercentOf(name), b = theirs.PercentOf(name);
    if (std::max(a, b) <= 2 || std::abs(a - b) <= largest) continue;
    largest = std::abs(a - b);
    where = name + ": " + std::to_string(a) + " against perf's " + std::to_string(b);
  }
  return largest;
}

// As often as the kernel lets anyone sample, 10 kHz at most.
int Rate() {
  std::ifstream file("/proc/sys/kernel/perf_event_max_sample_rate");
  int most = 0;
  return file >> most ? std::min(most, 10'000) : 10'000;
}

// One run of the demo. Both attach to it at the same time, after its start, whose functions are others, for as long.
void SampleByBoth(const std::string& event, const std::string& folder, Samples& ours, Samples& theirs) {
  const std::string data = folder + "/perf.data", ours_is = folder + "/ours.folded", rate = std::to_string(Rate());
  const std::string sampled = event + " -p $demo ";
  const Run run =
      RunCommand(RECORD " -f 10 --duration 60 -o " + folder + "/demo.folded > " + folder +
                 "/demo & demo=$!; sleep 2; " RECORD " -f " + rate + " --duration 5 --no-inline --no-demangle -o " +
                 ours_is + " -e " + sampled + "> " + folder + "/report & perf record -B -q -o " + data + " -F " + rate +
                 " -e " + sampled + "-- sleep 5; code=$?; wait $! && kill -INT $demo && wait $demo && exit $code");
  INFO(run.output);
  REQUIRE(run.exit_code == 0);
  AddFolded(ours_is, ours);
  const std::string columns = " --stdio --no-children --no-demangle -F overhead,sample,dso,symbol -t '|' 2>/dev/null";
  AddPerfReport(RunCommand("perf report -i " + data + columns).output, theirs);
}

// Their ticks have nothing to do with each other: what differs is chance, and becomes less with more samples. Two points
// are three standard deviations of the hottest function (three tenths of all) with 10,000 samples.
TEST_CASE("record and perf report agree on every function above 2 %, within 2 points", "[record][measurement]") {
  const perfkit::testing::TempFolder folder;
  const std::string event = geteuid() == 0 ? "cpu-clock" : "cpu-clock:u";
  const Run probe = RunCommand("perf record -B -q -o " + folder.path() + "/probe -e " + event + " true");
  if (probe.exit_code != 0) SKIP_TEST("perf is not here, or may not: " + probe.output.substr(0, 100));
  Samples ours, theirs;
  std::string where;
  CHECK(perfkit::testing::HoldsOnceInThree([&] {
    SampleByBoth(event, folder.path(), ours, theirs);
    const double difference = LargestDifference(ours, theirs, where);
    std::printf("%.2f s and %llu samples; largest difference %.2f points, %s\n", static_cast<double>(ours.all) / 1e9,
                static_cast<unsigned long long>(theirs.all), difference, where.c_str());
    return difference <= 2;
  }));
  INFO(where);
  CHECK(ours.all > 500 * 1e9 / Rate());
  CHECK(theirs.all > 500);
}

}  // namespace
