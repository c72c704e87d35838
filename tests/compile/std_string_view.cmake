# Compiles everything with an Abseil whose string_view, optional, any and variant are the standard ones, as Abseil
# itself chooses for C++17 and later; Debian's has its own types. Uses a copy of its headers with a patched options.h.
#   cmake -DCXX= -DSOURCE= -DBUILD= -DABSL= -P std_string_view.cmake
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

folder_sources(folders "${SOURCE}" "${BUILD}" "${SOURCE}/tests/consumer/project/consumer.cc")
foreach(name IN LISTS folders)
  # A syntax check is enough to see whether the types fit.
  # -H shows that the patched options.h is the one that is read.
  execute_process(COMMAND ${CXX} -std=c++20 -fsyntax-only -H "-I${BUILD}/include" "-I${SOURCE}" "-I${SOURCE}/include"
                          "${BUILD}/${name}.cc" RESULT_VARIABLE failed ERROR_VARIABLE out)
  if(failed)
    string(REGEX REPLACE "(^|\n)[.!x]+ [^\n]*" "" out "${out}")
    message(SEND_ERROR "${name} does not compile with the standard string_view: ${out}")
  elseif(out MATCHES "[.] ${ABSL}/absl")
    message(FATAL_ERROR "${name} was compiled against the unpatched Abseil in ${ABSL}")
  endif()
endforeach()
list(LENGTH folders count)
message(STATUS "${count} folders compile against an Abseil of standard types")
if(count LESS 5)
  message(FATAL_ERROR "that is too few")
endif()
