// Runs other people's readers.
#pragma once

#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "tests/support/run.h"
#include "tests/support/skip.h"

namespace perfkit::testing {

// The folder with the node_modules of package.json; "" if this machine's Node is too old for them (install.cmake).
inline std::string NodeReaders() {
  const std::string folder = PERFKIT_READERS;
  return access((folder + "/installed").c_str(), R_OK) == 0 ? folder : "";
}

// What a command prints. It has to succeed.
inline std::string OutputOf(const std::string& command) {
  const Run run = RunCommand(command);
  INFO(command << "\n" << run.output);
  CHECK(run.exit_code == 0);
  return run.output;
}

// What tests/exporters/readers/<script> prints, run by Node beside the readers from npm.
inline std::string OutputOfScript(const std::string& script, const std::string& arguments) {
  const std::string path = std::string(PERFKIT_TEST_DATA) + "/exporters/readers/" + script;
  return OutputOf("cd " + NodeReaders() + " && node " + path + " " + arguments);
}

}  // namespace perfkit::testing

// Leaves the test case where the readers from npm can't run.
#define NEED_NODE_READERS() \
  if (::perfkit::testing::NodeReaders().empty()) SKIP_TEST("the readers from npm need Node 20 or later")
