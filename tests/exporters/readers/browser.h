// Runs pages in headless Chromium (browser.py).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tests/exporters/readers/readers.h"
#include "tests/support/temp_folder.h"

namespace perfkit::testing {

inline bool HasBrowser() { return RunCommand("command -v chromium || command -v chromium-browser").exit_code == 0; }

// A step whose result is the value of a JavaScript expression; a promise is awaited.
inline nlohmann::json Eval(const std::string& expression) { return {{"eval", expression}}; }

// Resolves once the condition, an expression, is true.
inline nlohmann::json WaitUntil(const std::string& condition) {
  return Eval("new Promise(resolve => { const look = () => (" + condition +
              ") ? resolve(true) : setTimeout(look, 10); look(); })");
}

// Opens a page, a path or a URL, takes the steps, and returns what each of them gave. The page may not complain.
inline nlohmann::json RunBrowser(const std::string& page, const nlohmann::json& steps) {
  const TempFolder folder;
  folder.Write("/steps.json", steps.dump());
  const std::string output = OutputOf("python3 " + std::string(PERFKIT_TEST_DATA) + "/exporters/readers/browser.py '" +
                                      page + "' < " + folder.path() + "/steps.json");
  nlohmann::json answer = nlohmann::json::parse(output, nullptr, false);
  INFO(output.substr(0, 2000));
  REQUIRE(answer.is_object());
  CHECK(answer["errors"] == nlohmann::json::array());
  return answer["results"];
}

}  // namespace perfkit::testing

#define NEED_BROWSER() \
  if (!::perfkit::testing::HasBrowser()) SKIP_TEST("no Chromium is installed")
