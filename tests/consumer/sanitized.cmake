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
