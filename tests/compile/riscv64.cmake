# Compiles the library for riscv64 without warnings; nothing is linked or run. Counters go through read(2) there.
#   cmake -DCXX= -DSOURCE= -DBUILD= -DABSL= -P riscv64.cmake
#
# Debian's Abseil for riscv64 is not reliably available. Its headers are the same on every architecture, so this
# machine's are used, by a link in a folder that contains nothing else of this machine.
include("${CMAKE_CURRENT_LIST_DIR}/Folders.cmake")
file(REMOVE_RECURSE "${BUILD}")
file(MAKE_DIRECTORY "${BUILD}/include")
file(CREATE_LINK "${ABSL}/absl" "${BUILD}/include/absl" SYMBOLIC)
set(flags -std=c++20 -O1 -Wall -Wextra -Wpedantic -Werror -Wno-missing-field-initializers -isystem "${BUILD}/include"
          "-I${SOURCE}" "-I${SOURCE}/include")

list(APPEND flags -Wno-subobject-linkage)  # a folder's unnamed namespaces look like those of a header
file(GLOB_RECURSE testing "${SOURCE}/src/testing/*.cc")  # the one component that needs nothing
folder_sources(folders "${SOURCE}" "${BUILD}" ${testing})
list(LENGTH folders count)
if(count LESS 15)
  message(FATAL_ERROR "only ${count} folders in ${SOURCE}/src")
endif()
file(WRITE "${BUILD}/by_read.cc" "#include \"perfkit/count.h\"\nstatic_assert(!perfkit::PageAccess::kHasRegisters);\n")
foreach(name IN LISTS folders ITEMS by_read)
  execute_process(COMMAND ${CXX} ${flags} -c "${BUILD}/${name}.cc" -o "${BUILD}/${name}.o" RESULT_VARIABLE failed)
  if(failed)
    message(SEND_ERROR "${name} does not compile for riscv64")
  endif()
endforeach()
message(STATUS "${count} folders compile for riscv64")
