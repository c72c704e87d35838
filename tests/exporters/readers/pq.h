// Runs Firefox Profiler's command line, which reads Firefox's and Chrome's files.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "perfkit/profile_writer.h"
#include "tests/exporters/readers/readers.h"
#include "tests/support/temp_folder.h"

namespace perfkit::testing {

// A loaded file. The program keeps it in a background process of its own, which ends with this object.
class Pq {
 public:
  // `ending`: the format.
  Pq(const Profile& profile, const std::string& ending) {
    const std::string path = folder_.path() + "/work" + ending;
    REQUIRE(WriteProfile(profile, path) == absl::OkStatus());
    OutputOf(Command("load " + path));
  }
  Pq(const Pq&) = delete;
  Pq& operator=(const Pq&) = delete;
  ~Pq() { RunCommand(Command("stop --all")); }

  // What a command prints as JSON.
  nlohmann::json Ask(const std::string& command) const {
    const std::string output = OutputOf(Command(command + " --json"));
    INFO(command << "\n" << output.substr(0, 1000));
    nlohmann::json answer = nlohmann::json::parse(output, nullptr, false);
    REQUIRE(answer.is_object());
    return answer;
  }

 private:
  std::string Command(const std::string& arguments) const {
    return "PROFILER_CLI_SESSION_DIR=" + folder_.path() + "/sessions node " + NodeReaders() +
           "/node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js " + arguments;
  }

  TempFolder folder_;
};

}  // namespace perfkit::testing
