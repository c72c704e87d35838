# Builds a program for each sanitizer with an installed perfkit that is built without one:
# cmake -DCXX= -DCLANG= -DPREFIX= -DBUILD= -P
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/Steps.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/use_pkgconfig.cmake")
if(NOT pkg_config)
  return()
endif()

# clang links its runtimes into the program, gcc's are libraries.
foreach(compiler IN ITEMS ${CXX} ${CLANG})
  foreach(sanitizer IN ITEMS address thread)
    step("build with ${compiler}, ${sanitizer}" sh -c
         "'${compiler}' -std=c++20 -fsanitize=${sanitizer} '${CMAKE_CURRENT_LIST_DIR}/project/sanitized.cc' \
          -o '${BUILD}/sanitized' $('${pkg_config}' --cflags --libs perfkit-testing_alloc perfkit-locks)")
    step("run with ${compiler}, ${sanitizer}" "${BUILD}/sanitized")
  endforeach()
endforeach()

# An unchanged program of clang's: its sanitizer looks for the next function of each name, and finds the preloaded one. In
# programs of gcc's, sanitizers refuse libraries that are preloaded before them.
if(NOT CLANG)
  return()
endif()
file(GLOB_RECURSE preload "${PREFIX}/libperfkit_locks_preload.so")
file(WRITE "${BUILD}/mutex.cc" "#include <mutex>\nint main() { std::mutex mutex; const std::scoped_lock lock(mutex); }\n")
foreach(sanitizer IN ITEMS address thread)
  step("build a program without perfkit" "${CLANG}" -std=c++20 -fsanitize=${sanitizer} "${BUILD}/mutex.cc" -o "${BUILD}/mutex")
  step("preload it" ${CMAKE_COMMAND} -E env "LD_PRELOAD=${preload}" "${BUILD}/mutex")
endforeach()

# These runtimes ask the preloaded malloc for all, for some, or for none of the functions. The search for leaks itself
# needs ptrace(2), which containers forbid.
file(GLOB_RECURSE preload "${PREFIX}/libperfkit_malloc_preload.so")
foreach(sanitizer IN ITEMS address thread leak)
  step("build with ${sanitizer}, to be preloaded" sh -c
       "'${CLANG}' -std=c++20 -fsanitize=${sanitizer} '${CMAKE_CURRENT_LIST_DIR}/project/reallocations.cc' \
        -o '${BUILD}/reallocations' $('${pkg_config}' --cflags --libs perfkit-testing)")
  step("run with ${sanitizer} and a preloaded malloc" ${CMAKE_COMMAND} -E env LSAN_OPTIONS=detect_leaks=0
       ASAN_OPTIONS=detect_leaks=0 "LD_PRELOAD=${preload}" "${BUILD}/reallocations")
endforeach()
