// Catch2's header of version 2, on top of version 3: in the include path only where that is what is installed, so that
// the tests are written once. Brings back the names that version 3 moved.
#pragma once

#include <catch2/catch_all.hpp>
#include <concepts>
#include <string>
#include <utility>

namespace Catch {

using TestEventListenerBase = EventListenerBase;

namespace Matchers {
// Of a string, version 3 calls it ContainsSubstring, and keeps Contains for the elements of ranges.
template <class Text>
requires std::convertible_to<Text, std::string> StringContainsMatcher Contains(Text&& text) {
  return ContainsSubstring(std::string(std::forward<Text>(text)));
}
}  // namespace Matchers

using namespace Matchers;  // NOLINT(google-build-using-namespace): as version 2 has it

}  // namespace Catch

using Catch::Approx;
