// The HTML page without its data: src/exporters/html as C++ (cmake/PageSource.cmake).
#pragma once

#include <span>
#include <string_view>

namespace perfkit::exporters {

extern const std::string_view kPageBeforeData;
extern const std::span<const std::string_view> kPageAfterData;

}  // namespace perfkit::exporters
