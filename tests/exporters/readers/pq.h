// Runs Firefox Profiler's command line, which reads Firefox's and Chrome's files, and folded stacks.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "perfkit/profile_writer.h"
#include "tests/exporters/readers/readers.h"
#include "tests/support/temp_folder.h"

namespace perfkit::testing {

// A loaded file. The program answers from a background process, which is started here and ends with this object: the
// program's own way to start it gives up after half a second, which a busy machine does not keep.
class Pq {
 public:
  // `ending`: the format.
  Pq(const Profile& profile, const std::string& ending, const WriteOptions& options = {}) {
    const std::string path = folder_.path() + "/work" + ending;
    REQUIRE(WriteProfile(profile, path, options) == absl::OkStatus());
    process_ = OutputOf(Command("--daemon " + path) + " > " + folder_.path() + "/log 2>&1 < /dev/null & echo $!");
    process_.erase(process_.find_last_not_of('\n') + 1);
    // Asked before it is ready, the program takes the session for a dead one and removes it: its log says when it is.
    const std::string log = folder_.path() + "/sessions/test.log";
    while (RunCommand("grep -q 'Profile loaded successfully' " + log).exit_code != 0) {
      const Run run = RunCommand("cat " + folder_.path() + "/log " + log + "; sleep 0.05; kill -0 " + process_);
      INFO(run.output);
      REQUIRE(run.exit_code == 0);
      REQUIRE(run.output.find("rror") == std::string::npos);
    }
  }
  Pq(const Pq&) = delete;
  Pq& operator=(const Pq&) = delete;
  ~Pq() { RunCommand("kill " + process_); }

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
           "/node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js " + arguments + " --session test";
  }

  TempFolder folder_;
  std::string process_;  // its number
};

}  // namespace perfkit::testing
