# Uses ccache if it is installed and can write its cache (an ordinary user may run with root's HOME).
find_program(PERFKIT_CCACHE ccache DOC "The compiler cache, or PERFKIT_CCACHE-NOTFOUND")
mark_as_advanced(PERFKIT_CCACHE)
if(PERFKIT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(probe "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/ccache_probe.cc")
  file(WRITE "${probe}" "int probe;\n")
  execute_process(COMMAND "${PERFKIT_CCACHE}" "${CMAKE_CXX_COMPILER}" -c "${probe}" -o "${probe}.o"
                  RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed EQUAL 0)
    # Precompiled headers need these two; base_dir lets one clone use the results of another.
    set(CMAKE_CXX_COMPILER_LAUNCHER
        "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}"
        "${PERFKIT_CCACHE}")
  endif()
endif()
