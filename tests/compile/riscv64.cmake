# Compiles the core for riscv64, without warnings, against an Abseil whose string_view, optional, any and variant are the
# standard ones, as Abseil itself chooses for C++17 and later; Debian's has types of its own. Nothing is linked or run.
#   cmake -DCXX= -DSOURCE= -DBUILD= -DABSL= -P riscv64.cmake
#
# Abseil's headers are the same on every architecture, so a copy of this machine's serves, with options.h patched.
include("${CMAKE_CURRENT_LIST_DIR}/Folders.cmake")
file(REMOVE_RECURSE "${BUILD}")
file(COPY "${ABSL}/absl" DESTINATION "${BUILD}/include")
set(options "${BUILD}/include/absl/base/options.h")
file(READ "${options}" text)
string(REGEX REPLACE "(#define ABSL_OPTION_USE_STD_[A-Z_]+) [02]" "\\1 1" text "${text}")
if(NOT text MATCHES "USE_STD_STRING_VIEW 1")
  message(FATAL_ERROR "${options} is not as expected")
endif()
file(WRITE "${options}" "${text}")

# A syntax check is enough to see whether types and builtins fit. -H: the patched options.h must be the one that is read,
# not a mixture. A folder's unnamed namespaces look like those of a header.
set(flags -std=c++20 -fsyntax-only -H -Wall -Wextra -Wpedantic -Werror -Wno-missing-field-initializers
          -Wno-subobject-linkage -isystem "${BUILD}/include" "-I${SOURCE}" "-I${SOURCE}/include")
file(GLOB_RECURSE testing "${SOURCE}/src/testing/*.cc")  # the one component that needs nothing
folder_sources(folders "${SOURCE}" "${BUILD}" "${SOURCE}/tests/consumer/project/consumer.cc" ${testing})
list(LENGTH folders count)
if(count LESS 15)
  message(FATAL_ERROR "only ${count} folders in ${SOURCE}/src")
endif()
# Counters go through read(2) there.
file(WRITE "${BUILD}/by_read.cc" "#include \"perfkit/count.h\"\nstatic_assert(!perfkit::PageAccess::kHasRegisters);\n")
foreach(name IN LISTS folders ITEMS by_read)
  execute_process(COMMAND ${CXX} ${flags} "${BUILD}/${name}.cc" RESULT_VARIABLE failed ERROR_VARIABLE out)
  if(failed)
    string(REGEX REPLACE "(^|\n)[.!x]+ [^\n]*" "" out "${out}")
    message(SEND_ERROR "${name} does not compile for riscv64 with the standard string_view: ${out}")
  elseif(out MATCHES "[.] ${ABSL}/absl")
    message(FATAL_ERROR "${name} was compiled against the unpatched Abseil in ${ABSL}")
  endif()
endforeach()
message(STATUS "${count} folders compile for riscv64 against an Abseil of standard types")
