// sysfs files that no kernel writes: each is answered with a Status that names the file, and quickly.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "perfkit/event.h"
#include "src/event/pmu.h"

namespace perfkit {
namespace {

// A sysfs of one PMU "p" with one named event "e", in a folder of its own that goes with it.
class Tree {
 public:
  Tree() {
    char path[] = "/tmp/perfkit_sysfs_XXXXXX";
    REQUIRE(::mkdtemp(path) != nullptr);
    root_ = path;
    Write("type", "33\n");
    Write("format/event", "config:0-7\n");
    Write("format/flag", "config:8\n");
    Write("events/e", "event=0x11\n");
  }
  ~Tree() { std::filesystem::remove_all(root_); }

  std::string Folder() const { return root_ + "/bus/event_source/devices/p"; }

  void Write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = Folder() + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }

  absl::StatusOr<EventConfig> Parse(std::string_view text) const {
    return ParseEvent(text, {.sysfs = root_, .tracefs = root_ + "/none", .proc = "/nonexistent"});
  }

  // The message, with this tree's folder as "P".
  std::string Refusal(std::string_view text) const {
    const absl::StatusOr<EventConfig> event = Parse(text);
    if (event.ok()) return "parsed";
    std::string message(event.status().message());
    for (size_t at = message.find(Folder()); at != message.npos; at = message.find(Folder())) {
      message.replace(at, Folder().size(), "P");
    }
    return message;
  }

 private:
  std::string root_;
};

TEST_CASE("the tree of these tests is a good one", "[hostile]") {
  const Tree tree;
  CHECK(tree.Parse("p/e/")->parts[0].config == 0x11);
  CHECK(tree.Parse("p/e,flag/")->parts[0].config == 0x111);
  CHECK(tree.Parse("p/e/")->parts[0].type == 33);
}

TEST_CASE("types that are no numbers", "[hostile]") {
  const Tree tree;
  for (const char* text : {"", "\n", "x", "-1", "4294967296", "1 2"}) {
    tree.Write("type", text);
    CHECK(tree.Parse("p/e/").status().code() == absl::StatusCode::kFailedPrecondition);
  }
  tree.Write("type", "abc\n");
  CHECK(tree.Refusal("p/e/") == "event 'p/e/': P/type holds 'abc', which is no number");
  tree.Write("type", "33");  // no newline
  CHECK(tree.Refusal("p/e/") == "parsed");
}

TEST_CASE("files of any size and any bytes", "[hostile]") {
  const Tree tree;
  tree.Write("type", std::string(1 << 20, '1'));
  CHECK(tree.Refusal("p/e/") == "event 'p/e/': P/type is larger than 65536 bytes");
  tree.Write("type", std::string("3\0003\xff\x1b", 5));
  CHECK(tree.Refusal("p/e/") == "event 'p/e/': P/type holds '3\\x003\\xff\\x1b', which is no number");
  tree.Write("type", "33");
  tree.Write("format/event", std::string(1 << 20, '\n'));
  CHECK(tree.Refusal("p/event=1/").ends_with("P/format/event is larger than 65536 bytes"));
}

TEST_CASE("formats that make no sense", "[hostile]") {
  const Tree tree;
  tree.Write("format/event", "config:0-7,4-9\n");
  CHECK(tree.Refusal("p/event=1/") ==
        "event 'p/event=1/', character 3: P/format/event holds 'config:0-7,4-9', which is no format");
  CHECK(tree.Refusal("p/e/") ==
        "event 'p/e/', character 3: P/events/e holds 'event=0x11', which is no event of this PMU");
  tree.Write("format/flag", "config:99\n");
  CHECK(tree.Refusal("p/flag/") == "event 'p/flag/', character 3: P/format/flag holds 'config:99', which is no format");
}

TEST_CASE("named events that make no sense", "[hostile]") {
  const Tree tree;
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("event"), std::string("event="), std::string("event=0x100"),
        std::string("event=-1"), std::string("umask=1"), std::string(",,,"), std::string("event=1,event=2"),
        std::string("\0\0\0", 3), std::string("event=99999999999999999999"), std::string(60000, ',')}) {
    INFO(text.substr(0, 30));
    tree.Write("events/e", text);
    CHECK(tree.Parse("p/e/").status().code() == absl::StatusCode::kFailedPrecondition);
    CHECK(tree.Refusal("p/e/").find("P/events/e holds") != std::string::npos);
  }
}

TEST_CASE("named events that name each other, round and round", "[hostile]") {
  const Tree tree;
  tree.Write("events/e", "other\n");
  tree.Write("events/other", "e,event=3\n");
  CHECK(tree.Refusal("p/e/").find("no event of this PMU") != std::string::npos);
  tree.Write("events/other", "event=3\n");
  CHECK(tree.Parse("p/e/")->parts[0].config == 3);
  std::string many = "n0";
  for (int i = 1; i < 60; ++i) many += ",n" + std::to_string(i);
  for (int i = 0; i < 60; ++i) tree.Write("events/n" + std::to_string(i), many);
  CHECK(tree.Refusal("p/n0/").find("no event of this PMU") != std::string::npos);
}

TEST_CASE("named events that leave a term to the user", "[hostile]") {
  const Tree tree;
  tree.Write("events/e", "event=?,flag=1\n");
  CHECK(tree.Refusal("p/e/") ==
        "event 'p/e/', character 3: event 'e' of PMU 'p' needs a value for term 'event': add 'event=..'");
  CHECK(tree.Parse("p/e,event=7/")->parts[0].config == 0x107);
}

TEST_CASE("scales and units that make no sense", "[hostile]") {
  const Tree tree;
  for (const char* text : {"", "x", "-1", "0", "nan", "inf", "1e999", "1.5 2", "0x10"}) {
    INFO(text);
    tree.Write("events/e.scale", text);
    CHECK(tree.Parse("p/e/").status().code() == absl::StatusCode::kFailedPrecondition);
  }
  tree.Write("events/e.scale", "6.1e-5\n");
  tree.Write("events/e.unit", std::string("M\x1biB\0", 5));
  CHECK(tree.Parse("p/e/")->scale == 6.1e-5);
  CHECK(tree.Parse("p/e/")->unit == "M\\x1biB\\x00");
}

// Parses "q/e/" of two PMUs. The second PMU's event has the file `file` with the contents `text`.
absl::StatusOr<EventConfig> SumWith(const char* file, const char* text) {
  const Tree tree;
  for (const std::string& pmu : {std::string("../q_0/"), std::string("../q_1/")}) {
    tree.Write(pmu + "type", "34\n");
    tree.Write(pmu + "format/event", "config:0-7\n");
    tree.Write(pmu + "events/e", "event=0x11\n");
    tree.Write(pmu + "events/e.scale", "0.5\n");
    tree.Write(pmu + "events/e.unit", "MiB\n");
  }
  tree.Write(std::string("../q_1/events/e.") + file, text);
  return tree.Parse("q/e/");
}

TEST_CASE("PMUs that give an event different scales or units are not summed", "[hostile]") {
  CHECK(SumWith("scale", "0.5\n")->parts.size() == 2);
  CHECK(absl::IsFailedPrecondition(SumWith("scale", "0.25\n").status()));
  CHECK(absl::IsFailedPrecondition(SumWith("unit", "KiB\n").status()));
}

TEST_CASE("CPU lists that make no sense", "[hostile]") {
  const Tree tree;
  for (const char* file : {"cpus", "cpumask"}) {
    tree.Write(file, "0-4294967295\n");
    CHECK(tree.Refusal("p/e/") ==
          std::string("event 'p/e/': P/") + file + " holds '0-4294967295', which is no list of CPUs");
    std::filesystem::remove(tree.Folder() + "/" + file);
  }
}

TEST_CASE("folders where files should be, and files where folders should be", "[hostile]") {
  const Tree tree;
  std::filesystem::create_directories(tree.Folder() + "/events/dir");
  CHECK(tree.Parse("p/dir/").status().code() == absl::StatusCode::kFailedPrecondition);
  std::filesystem::remove_all(tree.Folder() + "/events");
  tree.Write("events", "a file\n");
  CHECK(tree.Parse("p/e/").status().code() == absl::StatusCode::kFailedPrecondition);
  std::filesystem::create_symlink("type2", tree.Folder() + "/type2");  // a link to itself
  CHECK(tree.Refusal("p/event=1/") == "parsed");
}

TEST_CASE("names do not lead out of the tree", "[hostile]") {
  const Tree tree;
  for (const char* text : {"../p/e/", "./event=1/", "p/../", "p/.hidden/", "p/..=1/"}) {
    INFO(text);
    CHECK_FALSE(tree.Parse(text).ok());
  }
}

}  // namespace
}  // namespace perfkit
