# Builds consumers with a plain compiler line and pkg-config: cmake -DCXX= -DPREFIX= -DBUILD= -DVERSION= -DWANTED= -P
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/Steps.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/use_pkgconfig.cmake")
if(NOT pkg_config)
  return()
endif()

# build(<source> <pkg-config's arguments>): builds and runs it.
function(build source arguments)
  step("build with ${arguments}" sh -c
       "'${CXX}' -std=c++20 '${source}' -o '${BUILD}/consumer' $('${pkg_config}' --cflags --libs ${arguments})")
  step("run with ${arguments}" "${BUILD}/consumer")
endfunction()

build("${CMAKE_CURRENT_LIST_DIR}/project/consumer.cc" perfkit)
build("${CMAKE_CURRENT_LIST_DIR}/project/consumer.cc" "--static perfkit")
step("tell the version" ${pkg_config} --exact-version=${VERSION} perfkit)

# One function of each component, which only its own library has.
string(CONCAT call_dwarf "#include <perfkit/dwarf_lines.h>\n#include <perfkit/symbolizer.h>\n"
       "int main() { const perfkit::Symbolizer symbolizer({.lines = perfkit::DwarfLines}); }")
set(call_pfm "#include <perfkit/pfm.h>\nint main() { return perfkit::ParsePfmEvent(\"nonesuch\").ok() ? 1 : 0; }")
set(call_testing "#include <perfkit/testing.h>\nint main() { return perfkit::Not({}).required ? 1 : 0; }")
set(call_exporters "#include <perfkit/profile_writer.h>\nint main() { return perfkit::ProfileFormats().size() > 5 ? 0 : 1; }")
string(REPLACE "," ";" components "${WANTED}")
foreach(name IN LISTS components)
  set(source "${CMAKE_CURRENT_LIST_DIR}/project/${name}.cc")
  if(DEFINED call_${name})
    set(source "${BUILD}/${name}.cc")
    file(WRITE "${source}" "${call_${name}}\n")
  endif()
  build("${source}" perfkit-${name})
endforeach()
file(WRITE "${BUILD}/alloc.cc" "#include <perfkit/testing.h>
int main() {
  using namespace perfkit;
  const Measurement m = Measure({event::kAllocations}, [] { return new char; });
  return m.costs.at(0).read_path == \"wrapped malloc\" ? 0 : 1;
}
")
build("${BUILD}/alloc.cc" perfkit-testing_alloc)
