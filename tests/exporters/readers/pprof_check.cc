// What go tool pprof, protoc and npm's pprof-format read in files of WritePprof.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "perfkit/profile_builder.h"
#include "perfkit/profile_writer.h"
#include "src/exporters/accounting_text.h"
#include "tests/exporters/any_profile.h"
#include "tests/exporters/hostile_profile.h"
#include "tests/exporters/large_profile.h"
#include "tests/exporters/pprof_file.h"
#include "tests/exporters/readers/readers.h"
#include "tests/profile/sample_profile.h"
#include "tests/support/temp_folder.h"

namespace perfkit::testing {
namespace {

std::string WriteTo(const TempFolder& folder, const std::string& name, const Profile& profile) {
  const std::string path = folder.path() + "/" + name + ".pb.gz";
  CHECK(WriteProfile(profile, path) == absl::OkStatus());
  return path;
}

std::string Pprof(const std::string& arguments) {
  return OutputOf("go tool pprof -symbolize=none -unit=ns -nodecount=100000 -nodefraction=0 -edgefraction=0 " +
                  arguments);
}

// Lines without the spaces at their ends.
std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line.substr(0, line.find_last_not_of(' ') + 1));
  return lines;
}

// Self and total of each function.
struct Row {
  int64_t self = 0, total = 0;
  bool operator==(const Row&) const = default;
};
using Rows = std::map<std::string, Row>;

Rows TopOf(const std::string& output) {
  const std::regex row(
      R"(^ *(-?[0-9]+)(?:ns)? +[-0-9.]+% +[-0-9.]+% +(-?[0-9]+)(?:ns)? +[-0-9.]+%  (.*?)(?: \(inline\))?$)");
  Rows rows;
  for (const std::string& line : LinesOf(output)) {
    std::smatch match;
    if (std::regex_match(line, match, row)) rows[match[3]] = {std::stoll(match[1]), std::stoll(match[2])};
  }
  return rows;
}

// The calls of a stack as pprof shows them: code without a name by its module.
std::set<std::string> NamesIn(const Profile& profile, uint32_t stack, std::string& leaf) {
  std::set<std::string> names;
  for (uint32_t at = stack; at != ProfileStack::kRoot; at = profile.stacks[at].parent) {
    const uint32_t index = profile.stacks[at].location;
    const ProfileLocation& location = profile.locations[index];
    std::vector<std::string> calls;
    for (const ProfileCall& call : profile.CallsAt(index)) calls.push_back(profile.CallName(index, call));
    if (calls.empty()) {
      const std::string& path = profile.strings[profile.modules[location.module].path];
      calls.push_back("[" + path.substr(path.rfind('/') + 1) + "]");
    }
    if (names.empty()) leaf = calls[0];
    names.insert(calls.begin(), calls.end());
  }
  return names;
}

// What -top has to show of an event, of the samples that `filter` keeps.
template <class Filter>
Rows RowsOf(const Profile& profile, std::string_view event, Filter filter) {
  Rows rows;
  for (const ProfileSample& sample : profile.samples) {
    if (profile.events[sample.event].name != event || !filter(sample)) continue;
    std::string leaf;
    for (const std::string& name : NamesIn(profile, sample.stack, leaf)) {
      rows[name].total += static_cast<int64_t>(sample.weight);
    }
    rows[leaf].self += static_cast<int64_t>(sample.weight);
  }
  return rows;
}

Rows RowsOf(const Profile& profile, std::string_view event) {
  return RowsOf(profile, event, [](const ProfileSample&) { return true; });
}

TEST_CASE("go tool pprof -top has each event's self and total of each function", "[readers][pprof]") {
  const TempFolder folder;
  const Profile profile = profile::SampleProfile();
  const std::string path = WriteTo(folder, "sample", profile);
  for (const ProfileEvent& event : profile.events) {
    INFO(event.name);
    CHECK(TopOf(Pprof("-top -sample_index=" + event.name + " " + path)) == RowsOf(profile, event.name));
  }
  CHECK_THAT(Pprof("-top " + path), Catch::Contains("Type: cpu-clock") && Catch::Contains("File: app") &&
                                        Catch::Contains("Duration: 200ms") && Catch::Contains("Inlined<T> (inline)"));
  CHECK_THAT(OutputOf("go tool pprof -symbolize=none -top -sample_index=samples " + path),
             Catch::Contains("of 105 total"));
}

TEST_CASE("go tool pprof -tagfocus keeps the samples of a label", "[readers][pprof]") {
  const TempFolder folder;
  const Profile profile = profile::SampleProfile();
  const std::string path = WriteTo(folder, "sample", profile);
  const auto top = [&](const std::string& focus) {
    return TopOf(Pprof("-top -sample_index=cpu-clock -tagfocus='" + focus + "' " + path));
  };
  const auto rows = [&](auto filter) { return RowsOf(profile, "cpu-clock", filter); };
  const auto tid = [&](const ProfileSample& sample) { return profile.threads[sample.thread].tid; };
  CHECK(top("tid=43:43") == rows([&](const ProfileSample& sample) { return tid(sample) == 43; }));
  CHECK(top("thread=^app$") == rows([&](const ProfileSample& sample) { return tid(sample) == 42; }));
  CHECK(top("label=physics") == rows([](const ProfileSample& sample) { return sample.label != 0; }));
  CHECK(top("stack=part") == rows([](const ProfileSample& s) { return s.quality == StackQuality::kPart; }));
  CHECK(top("mode=kernel") == rows([](const ProfileSample& s) { return s.quality == StackQuality::kPart; }));
}

TEST_CASE("go tool pprof -tagfocus keeps the samples of a zone, a frame and a range of frames", "[readers][pprof]") {
  const TempFolder folder;
  ProfileBuilder builder;
  builder.profile() = profile::SampleProfile();
  builder.profile().zones.clear();
  const auto add = [&](uint64_t from_ms, uint64_t to_ms, const std::string& name, bool is_frame) {
    builder.AddZone({.from_ns = 1'000'000'000 + from_ms * 1'000'000,
                     .to_ns = 1'000'000'000 + to_ms * 1'000'000,
                     .name = builder.String(name),
                     .is_frame = is_frame});
  };
  for (uint64_t i = 0; i < 5; ++i) {
    add(20 * i, 20 * i + 20, "frame " + std::to_string(i), true);
    add(20 * i + 4, 20 * i + 18, "update", false);
    add(20 * i + 7, 20 * i + 13, "solve", false);
  }
  Profile profile = builder.Take();
  profile.samples[0].time_ns = 0;  // merged: in no zone, and in no frame
  const std::string path = WriteTo(folder, "zones", profile);
  const auto top = [&](const std::string& focus) {
    return TopOf(Pprof("-top -sample_index=cpu-clock -tagfocus='" + focus + "' " + path));
  };
  const auto rows_in = [&](const std::string& zone, uint64_t from_ms, uint64_t to_ms) {
    return RowsOf(profile, "cpu-clock", [&](const ProfileSample& sample) {
      const uint64_t ms = sample.merged() ? UINT64_MAX : (sample.time_ns - 1'000'000'000) / 1'000'000;
      const uint64_t in_frame = ms % 20;
      const bool is_update = in_frame >= 4 && in_frame < 18, is_solve = in_frame >= 7 && in_frame < 13;
      const bool is_in = zone.empty() || (zone == "update" && is_update) || (zone == "solve" && is_solve);
      return sample.thread == 0 && is_in && ms >= from_ms && ms < to_ms;
    });
  };
  CHECK(!top("zone=solve").empty());
  CHECK(top("zone=(^|/)update") == rows_in("update", 0, 100));
  CHECK(top("zone=/solve$") == rows_in("solve", 0, 100));
  CHECK(top("frame=frame 1$") == rows_in("", 20, 40));
  CHECK(top("frame_number=2:3") == rows_in("", 40, 80));
  CHECK(top("frame_number=0:0") == rows_in("", 0, 20));
}

TEST_CASE("go tool pprof -traces has each stack, inlined calls in it", "[readers][pprof]") {
  const TempFolder folder;
  const std::string output = Pprof("-traces " + WriteTo(folder, "sample", profile::SampleProfile()));
  int64_t sum = 0;
  const std::regex value(R"(^ *([0-9]+)ns   .*$)");
  for (const std::string& line : LinesOf(output)) {
    std::smatch match;
    if (std::regex_match(line, match, value)) sum += std::stoll(match[1]);
  }
  CHECK(sum == 100'000'000);
  CHECK_THAT(output, Catch::Contains("30000000ns   Inlined<T> (inline)\n             Hot\n"
                                     "             Work(int, char const*)\n             main\n             _start\n"));
  CHECK_THAT(output, Catch::Contains("thread:  worker \"1\"; <a>"));
}

TEST_CASE("go tool pprof -diff_base shows what changed, and nothing else", "[readers][pprof]") {
  const TempFolder folder;
  const Profile before = profile::SampleProfile();
  Profile after = before;
  for (ProfileSample& sample : after.samples) sample.weight += sample.label != 0 ? 500'000 : 0;
  const std::string before_path = WriteTo(folder, "before", before), after_path = WriteTo(folder, "after", after);
  Rows difference = RowsOf(after, "cpu-clock");
  for (const auto& [name, row] : RowsOf(before, "cpu-clock")) {
    difference[name].self -= row.self;
    difference[name].total -= row.total;
  }
  std::erase_if(difference, [](const auto& entry) { return entry.second == Row(); });
  CHECK(TopOf(Pprof("-top -diff_base=" + before_path + " " + after_path)) == difference);
  CHECK(TopOf(Pprof("-top -diff_base=" + before_path + " " + before_path)).empty());
}

// -raw: values by labels and calls.
SampleTotals RawOf(const std::string& output) {
  std::map<std::string, std::string> locations;
  std::vector<std::pair<std::string, std::vector<int64_t>>> samples;  // IDs and labels, values
  const std::regex sample(R"(^((?: *-?[0-9]+)+):((?: [0-9]+)*)$)"), place(R"(^ +([0-9]+): (.*)$)");
  const std::regex column(R"((:[0-9]+):[0-9]+ s=)");  // Go 1.24 has the column after the line, Go 1.19 has none.
  std::string part, id;
  for (const std::string& line : LinesOf(output)) {
    std::smatch match;
    if (line == "Samples:" || line == "Locations" || line == "Mappings") {
      part = line;
    } else if (part == "Samples:" && std::regex_match(line, match, sample)) {
      std::istringstream numbers(match[1]);
      std::vector<int64_t> values;
      for (int64_t value = 0; numbers >> value;) values.push_back(value);
      samples.emplace_back(match[2], values);
    } else if (part == "Samples:" && line.starts_with("    ")) {
      samples.back().first += " #" + line.substr(line.find_first_not_of(' '));
    } else if (part == "Locations" && std::regex_match(line, match, place)) {
      id = match[1];
      locations[id] = std::regex_replace(std::string(match[2]), column, "$1 s=");
    } else if (part == "Locations") {
      locations[id] += ", " + std::regex_replace(line.substr(line.find_first_not_of(' ')), column, "$1 s=");
    }
  }
  SampleTotals totals;
  for (const auto& [key, values] : samples) {
    const size_t labels = key.find(" #");
    std::string text = key.substr(labels);
    std::istringstream ids(key.substr(0, labels));
    for (std::string word; ids >> word;) text += " | " + locations.at(word);
    totals[text] = values;
  }
  return totals;
}

TEST_CASE("go tool pprof -raw has every value, label, call, file and line", "[readers][pprof]") {
  const TempFolder folder;
  const std::string output = Pprof("-raw " + WriteTo(folder, "sample", profile::SampleProfile()));
  const SampleTotals totals = RawOf(output);
  const std::string main = " | 0x200 M=1 main /src/main.cc:10 s=0() | 0x100 M=1 _start :0 s=0()";
  const std::string work = " | 0x300 M=1 Work(int, char const*) /src/work.cc:20 s=0()";
  const std::string hot = " | 0x5000 M=2 Inlined<T> /src/hot.h:7 s=0(), Hot /src/hot.cc:30 s=0()";
  const auto on_main = [](const std::string& labels, const std::string& numbers, const std::string& zone = "") {
    return " #frame:[frame] " + labels + "thread:[app]" + zone + " #" + numbers + "pid:[42] tid:[42]";
  };
  const auto value = [&](const std::string& key) {
    INFO(output << "\n" << key);
    return totals.contains(key) ? totals.at(key) : std::vector<int64_t>();
  };
  CHECK(value(on_main("label:[physics] mode:[user] stack:[whole] ", "") + hot + work + main) ==
        std::vector<int64_t>{15, 15'000'000, 0, 0});
  CHECK(value(on_main("label:[physics] mode:[user] stack:[whole] ", "", " zone:[physics]") + hot + work + main) ==
        std::vector<int64_t>{30, 30'000'000, 0, 0});
  CHECK(value(on_main("mode:[user] stack:[whole] ", "guessed_calls:[1 count] ") + " | 0x1234 M=3" + main) ==
        std::vector<int64_t>{6, 6'000'000, 0, 0});
  CHECK(value(on_main("mode:[kernel] stack:[part] ", "") + " | 0xffffffff81000000 M=4 clear_page :0 s=0()" + hot +
              work + main) == std::vector<int64_t>{2, 2'000'000, 0, 0});
  CHECK(totals.size() == PprofTotalsOf(profile::SampleProfile()).size());
  CHECK_THAT(output, Catch::Contains("/bin/app 0123456789abcdef [FN][FL][LN][IN]\n") &&
                         Catch::Contains("/lib/libbare.so  \n") && Catch::Contains("Time: 2023-11-14 22:13:21"));
}

TEST_CASE("go tool pprof -comments has the whole accounting", "[readers][pprof]") {
  const TempFolder folder;
  Profile profile = profile::SampleProfile();
  profile.events[0].accounting.counted = 1'000'000, profile.events[0].accounting.lost = 3;
  CHECK(LinesOf(Pprof("-comments " + WriteTo(folder, "sample", profile))) == exporters::AccountingLines(profile));
}

TEST_CASE("go tool pprof reads deep, large, empty and hostile profiles", "[readers][pprof]") {
  const TempFolder folder;
  CHECK_THAT(Pprof("-raw " + WriteTo(folder, "empty", Profile())), Catch::Contains("samples/count[dflt]"));
  CHECK_THAT(Pprof("-raw " + WriteTo(folder, "hostile", HostileProfile())), Catch::Contains("constructor"));
  const Rows deep = TopOf(Pprof("-top -sample_index=cpu-clock " + WriteTo(folder, "deep", DeepProfile(10'000))));
  CHECK(deep == Rows{{"Even", {0, 5}}, {"Odd", {5, 5}}});
  const Profile large = LargeProfile(100'000);
  CHECK(TopOf(Pprof("-top -sample_index=cpu-clock " + WriteTo(folder, "large", large))) == RowsOf(large, "cpu-clock"));
}

// The values of all samples, added up.
std::vector<int64_t> SumsOf(const Profile& profile) {
  std::vector<int64_t> sums(1 + profile.events.size());
  for (const auto& [key, values] : PprofTotalsOf(profile)) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
  }
  return sums;
}

// The same of the text that protoc makes of a file.
std::vector<int64_t> SumsOf(const std::string& textproto) {
  std::vector<int64_t> sums;
  size_t at = 0;
  for (const std::string& line : LinesOf(textproto)) {
    if (line == "sample {") at = 0;
    if (!line.starts_with("  value: ")) continue;
    sums.resize(std::max(sums.size(), at + 1));
    sums[at++] += std::stoll(line.substr(9));
  }
  return sums;
}

TEST_CASE("protoc reads each field by the format's own schema", "[readers][pprof]") {
  const TempFolder folder;
  const std::string schema = "/usr/share/gocode/src/github.com/google/pprof/proto";
  const Profile profiles[] = {profile::SampleProfile(), HostileProfile(), AnyProfile(17).Make()};
  for (const Profile& profile : profiles) {
    const std::string path = WriteTo(folder, "file", profile);
    const std::string text =
        OutputOf("zcat " + path + " | protoc -I" + schema + " --decode perftools.profiles.Profile profile.proto");
    CHECK_THAT(text, !Catch::Contains("invalid UTF-8"));
    CHECK_FALSE(std::regex_search(text, std::regex("(^|\n) *[0-9]+[ :{]")));  // a field that the schema has not
    CHECK(SumsOf(text) == SumsOf(profile));
  }
}

// The golden file was compared with SampleProfile by hand. It holds the order of fields and tables, too, on which no
// reader depends: after a change of it, look at the difference, and make it anew by the command here.
TEST_CASE("a file has the fields of the golden text, by the format's own schema", "[readers][pprof]") {
  const TempFolder folder;
  OutputOf("zcat " + WriteTo(folder, "golden", profile::SampleProfile()) +
           " | protoc -I/usr/share/gocode/src/github.com/google/pprof/proto --decode perftools.profiles.Profile "
           "profile.proto | diff " PERFKIT_TEST_DATA "/golden/exporters/pprof.txt -");
}

TEST_CASE("npm's pprof-format reads random profiles as they were", "[readers][pprof][node]") {
  NEED_NODE_READERS();
  const TempFolder folder;
  std::vector<Profile> profiles = {profile::SampleProfile(), Profile()};
  for (uint64_t seed = 1; seed <= 200; ++seed) profiles.push_back(AnyProfile(seed).Make());
  std::string paths;
  for (const Profile& profile : profiles) {
    paths += WriteTo(folder, std::to_string(paths.size()), profile) + " ";
  }
  const nlohmann::json read = nlohmann::json::parse(OutputOfScript("pprof_format.mjs", paths));
  REQUIRE(read.size() == profiles.size());
  for (size_t i = 0; i < profiles.size(); ++i) {
    INFO("profile " << i);
    SampleTotals totals;
    for (const auto& [key, values] : read[i]["totals"].items()) {
      for (const std::string value : values) totals[key].push_back(std::stoll(value));
    }
    CHECK((totals == PprofTotalsOf(profiles[i])));
    CHECK(read[i]["comments"].get<std::vector<std::string>>() == exporters::AccountingLines(profiles[i]));
  }
}

}  // namespace
}  // namespace perfkit::testing
