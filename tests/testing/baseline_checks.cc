// Baselines: the file as text, bad files, updates by many at once, and the verdicts.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "perfkit/testing.h"
#include "src/testing/matchers/baseline_file.h"

namespace perfkit {
namespace {

using namespace event;
using matchers::Baselines;

// A path in a folder of its own, gone at the end.
class ScratchFile {
 public:
  ScratchFile() {
    char name[] = "/tmp/perfkit-baseline-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~ScratchFile() { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/perfkit_baseline.json"; }
  void Write(const std::string& text) const { std::ofstream(path()) << text; }
  std::string Read() const {
    std::ifstream file(path());
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string folder_;
};

Measurement Of(const EventType& event, int64_t value) {
  Cost cost;
  cost.event = event;
  cost.event_class = ClassOf(event);
  cost.read_path = "stepper";
  cost.values = {value};
  return {{cost}};
}

TEST_CASE("what is written can be read again", "[baseline]") {
  Baselines all;
  all["find \"42\" \\ slow"]["instructions"]["stepper"] = 1180;
  all["find42"]["instructions"] = {{"stepper", 1180}, {"perf, user page", -3}};
  all["find42"]["allocations"]["wrapped malloc"] = 0;
  const std::string text = matchers::FormatBaselines(all);
  CHECK(*matchers::ParseBaselines(text) == all);
  CHECK(matchers::FormatBaselines(*matchers::ParseBaselines(text)) == text);
  CHECK(matchers::ParseBaselines("")->empty());
  CHECK(matchers::ParseBaselines("{}")->empty());
}

TEST_CASE("a file that is none of ours is refused with its line", "[baseline]") {
  for (const char* text :
       {"{", "[]", "{\"a\": 1}", "{\"a\": {\"b\": {\"c\": 1.5}}}", "{\"a\": {\"b\": {\"c\": \"1\"}}}",
        "{\"a\": {\"b\": {\"c\": 1}}} x", "{\"a", "{\"a\\q\": {}}", "{\"a\n\": {}}", "{\"a\\u00e9\": {}}",
        "{\"a\\u1\": {}}", "{\"a\\", "{\"a\": {},}", "{\"a\": {\"b\": {\"c\": 99999999999999999999}}}"}) {
    INFO(text);
    CHECK(absl::IsInvalidArgument(matchers::ParseBaselines(text).status()));
  }
  CHECK(matchers::ParseBaselines("{\n\n 7").status().message().substr(0, 7) == "line 3:");
}

TEST_CASE("any bytes are read or refused", "[baseline]") {
  std::mt19937 random(5);
  const std::string valid = "{\"a\": {\"b\": {\"c\": 1, \"d\": 2}}, \"e\": {}}";
  for (int i = 0; i < 5000; ++i) {
    std::string text = valid;
    for (int n = 0; n < 3; ++n)
      text[random() % text.size()] = static_cast<char>(random() % 2 ? random() : "{}\":,\\ 1"[random() % 8]);
    text.resize(random() % (text.size() + 1));
    const auto parsed = matchers::ParseBaselines(text);
    if (parsed.ok()) CHECK(matchers::ParseBaselines(matchers::FormatBaselines(*parsed)).ok());
  }
}

TEST_CASE("an update writes, later runs compare", "[baseline]") {
  const ScratchFile file;
  const auto judge = [&](int64_t value) {
    return JudgeBaseline(Of(kInstructions, value), "find42", 0.5_percent, file.path()).outcome;
  };
  CHECK(judge(1000) == Outcome::kUnmeasurable);
  CHECK_FALSE(std::filesystem::exists(file.path()));
  setenv("PERFKIT_BASELINE_UPDATE", "1", 1);
  CHECK(judge(1000) == Outcome::kPass);
  unsetenv("PERFKIT_BASELINE_UPDATE");
  CHECK(file.Read() == "{\n  \"find42\": {\n    \"instructions\": {\"stepper\": 1000}\n  }\n}\n");
  setenv("PERFKIT_BASELINE_UPDATE", "1", 1);
  CHECK(judge(1) == Outcome::kPass);  // the shorter text leaves nothing of the longer one
  CHECK(file.Read() == "{\n  \"find42\": {\n    \"instructions\": {\"stepper\": 1}\n  }\n}\n");
  CHECK(judge(1000) == Outcome::kPass);
  unsetenv("PERFKIT_BASELINE_UPDATE");
  CHECK(judge(1000) == Outcome::kPass);
  CHECK(judge(1005) == Outcome::kPass);
  CHECK(judge(1006) == Outcome::kFail);
  CHECK(judge(994) == Outcome::kFail);
  // Another event, another backend: nothing to compare with.
  CHECK(JudgeBaseline(Of(kAllocations, 1), "find42", 1_percent, file.path()).outcome == Outcome::kUnmeasurable);
  Measurement by_pmu = Of(kInstructions, 1000);
  by_pmu.costs[0].read_path = "perf, user page";
  CHECK(JudgeBaseline(by_pmu, "find42", 1_percent, file.path()).outcome == Outcome::kUnmeasurable);
}

TEST_CASE("noisy numbers are kept by machine", "[baseline]") {
  const ScratchFile file;
  const auto judge = [&](const char* machine, const char* update) {
    setenv("PERFKIT_MACHINE", machine, 1);
    setenv("PERFKIT_BASELINE_UPDATE", update, 1);
    const Outcome outcome = JudgeBaseline(Of(kCycles, 500), "x", 1_percent, file.path()).outcome;
    unsetenv("PERFKIT_MACHINE");
    unsetenv("PERFKIT_BASELINE_UPDATE");
    return outcome;
  };
  CHECK(judge("a", "1") == Outcome::kPass);
  CHECK(judge("a", "0") == Outcome::kPass);
  CHECK(judge("b", "0") == Outcome::kUnmeasurable);
}

TEST_CASE("a broken file is a failure, and is not overwritten", "[baseline]") {
  const ScratchFile file;
  file.Write("<<<<<<< HEAD\n");
  CHECK(JudgeBaseline(Of(kInstructions, 1), "x", 1_percent, file.path()).outcome == Outcome::kFail);
  CHECK(absl::IsInvalidArgument(matchers::UpdateBaseline(file.path(), "x", {})));
  CHECK(file.Read() == "<<<<<<< HEAD\n");
  CHECK_FALSE(matchers::UpdateBaseline("/proc/no/such/folder.json", "x", {}).ok());
}

TEST_CASE("parallel updates lose nothing", "[baseline]") {
  const ScratchFile file;
  std::vector<pid_t> children;
  for (int c = 0; c < 8; ++c) {
    const pid_t child = fork();
    if (child == 0) {
      bool fine = true;
      for (int i = 0; i < 20; ++i) {
        const std::string name = std::to_string(c) + "/" + std::to_string(i);
        fine &= matchers::UpdateBaseline(file.path(), name, {{"e", {{"b", i}}}}).ok();
      }
      _exit(fine ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  CHECK(matchers::ReadBaselines(file.path())->size() == 160);
}

TEST_CASE("the file lies beside the test that asks", "[baseline]") {
  CHECK(detail::PathBeside("/src/tests/find_test.cc") == "/src/tests/perfkit_baseline.json");
  CHECK(detail::PathBeside("find_test.cc") == "perfkit_baseline.json");
  setenv("PERFKIT_BASELINE", "/elsewhere.json", 1);
  CHECK(detail::PathBeside("/src/tests/find_test.cc") == "/elsewhere.json");
  unsetenv("PERFKIT_BASELINE");
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("any name is found again, and its control characters are escaped", "[baseline]") {
  const ScratchFile file;
  std::string name = "all ";
  for (int c = 0; c < 256; ++c) name += static_cast<char>(c);
  for (const std::string& tried : {std::string("a\tb"), std::string("a\nb"), name}) {
    setenv("PERFKIT_BASELINE_UPDATE", "1", 1);
    CHECK(JudgeBaseline(Of(kInstructions, 5), tried, 1_percent, file.path()).outcome == Outcome::kPass);
    unsetenv("PERFKIT_BASELINE_UPDATE");
    CHECK(JudgeBaseline(Of(kInstructions, 5), tried, 1_percent, file.path()).outcome == Outcome::kPass);
    CHECK(JudgeBaseline(Of(kInstructions, 6), tried, 1_percent, file.path()).outcome == Outcome::kFail);
  }
  CHECK(matchers::ReadBaselines(file.path())->size() == 3);
  CHECK(file.Read().find("\"a\\u0009b\"") != std::string::npos);
  CHECK(matchers::ParseBaselines("{\"\\u0041\\t\\n\\/\": {}}")->contains("A\t\n/"));
}

TEST_CASE("a name that is there twice is refused, with the name", "[baseline]") {
  for (const char* text :
       {"{\"x\": {},\n \"x\": {}}", "{\"a\": {\"x\": {},\n \"x\": {}}}", "{\"a\": {\"b\": {\"x\": 1,\n \"x\": 1}}}"}) {
    INFO(text);
    const absl::Status refused = matchers::ParseBaselines(text).status();
    CHECK(absl::IsInvalidArgument(refused));
    CHECK_THAT(std::string(refused.message()), Catch::Matchers::StartsWith("line 2: \"x\" is there twice"));
  }
  CHECK(matchers::ParseBaselines("{\"a\": {\"x\": {\"x\": 1}}, \"x\": {\"x\": {\"x\": 1}}}").ok());
  const ScratchFile file;
  file.Write("{\"x\": {\"e\": {\"b\": 1}}, \"x\": {\"e\": {\"b\": 2}}}");
  CHECK(absl::IsInvalidArgument(matchers::UpdateBaseline(file.path(), "y", {})));
  CHECK(JudgeBaseline(Of(kInstructions, 1), "y", 1_percent, file.path()).outcome == Outcome::kFail);
}

TEST_CASE("only a yes overwrites the baseline", "[baseline]") {
  const ScratchFile file;
  const auto judge = [&](const char* word) {
    file.Write("{\"x\": {\"instructions\": {\"stepper\": 1}}}");
    setenv("PERFKIT_BASELINE_UPDATE", word, 1);
    const Verdict verdict = JudgeBaseline(Of(kInstructions, 2), "x", 1_percent, file.path());
    unsetenv("PERFKIT_BASELINE_UPDATE");
    const bool written = matchers::ReadBaselines(file.path())->at("x").at("instructions").at("stepper") == 2;
    CHECK(written == (verdict.outcome == Outcome::kPass));
    return verdict;
  };
  for (const char* yes : {"1", "true", "TRUE", "yes", "Yes", "on"}) {
    INFO(yes);
    CHECK(judge(yes).outcome == Outcome::kPass);
  }
  for (const char* no : {"0", "false", "no", "No", "off", "OFF", ""}) {
    INFO(no);
    CHECK(judge(no).why.find("baseline 'x' is 1") == 0);
  }
  for (const char* other : {"2", "nope", "y", "01", "update"}) {
    INFO(other);
    const Verdict refused = judge(other);
    CHECK(refused.outcome == Outcome::kFail);
    CHECK(refused.why.find("PERFKIT_BASELINE_UPDATE is '" + std::string(other) + "'") == 0);
  }
}

TEST_CASE("a tolerance is 0 or more, and may be infinite", "[baseline]") {
  const ScratchFile file;
  file.Write("{\"x\": {\"instructions\": {\"stepper\": 0}, \"allocations\": {\"stepper\": 7}}}");
  const auto judge = [&](const EventType& event, double tolerance) {
    return JudgeBaseline(Of(event, 5), "x", Percent{tolerance}, file.path());
  };
  CHECK(judge(kInstructions, kInfinity).outcome == Outcome::kPass);
  CHECK(judge(kAllocations, kInfinity).outcome == Outcome::kPass);
  CHECK(judge(kInstructions, 1e300).outcome == Outcome::kFail);
  setenv("PERFKIT_MACHINE", "here", 1);
  for (const EventType& event : {kInstructions, kAllocations, kCycles}) {
    CHECK(judge(event, kNan).outcome == Outcome::kFail);
    CHECK(judge(event, kNan).why.find("nan") != std::string::npos);
    CHECK(judge(event, -1).outcome == Outcome::kFail);
    CHECK(judge(event, -1).why.find("-1") != std::string::npos);
  }
  unsetenv("PERFKIT_MACHINE");
}

TEST_CASE("a measurement without events never passes, and is not written", "[baseline]") {
  const ScratchFile file;
  for (const char* update : {"0", "1"}) {
    setenv("PERFKIT_BASELINE_UPDATE", update, 1);
    const Verdict verdict = JudgeBaseline({}, "x", 1_percent, file.path());
    unsetenv("PERFKIT_BASELINE_UPDATE");
    CHECK(verdict.outcome == Outcome::kFail);
    CHECK(verdict.why.find("no event was measured") != std::string::npos);
  }
  CHECK_FALSE(std::filesystem::exists(file.path()));
}

TEST_CASE("a baseline that is a FIFO or a folder fails, and stays", "[baseline]") {
  const ScratchFile file;
  const bool fifo = GENERATE(false, true);
  REQUIRE((fifo ? mkfifo(file.path().c_str(), 0666) : mkdir(file.path().c_str(), 0777)) == 0);
  for (const char* update : {"0", "1"}) {
    setenv("PERFKIT_BASELINE_UPDATE", update, 1);
    const Verdict verdict = JudgeBaseline(Of(kInstructions, 1), "x", 1_percent, file.path());
    unsetenv("PERFKIT_BASELINE_UPDATE");
    CHECK(verdict.outcome == Outcome::kFail);
    CHECK(verdict.why.find(file.path() + (fifo ? " is a FIFO" : " is a folder")) == 0);
    CHECK(verdict.why.find("Remedy: ") != std::string::npos);
    CHECK(std::filesystem::is_fifo(file.path()) == fifo);
    CHECK(std::filesystem::is_directory(file.path()) != fifo);
  }
}

}  // namespace
}  // namespace perfkit
