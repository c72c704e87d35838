# Installs the build, and moves the installed tree, which must not contain its path. cmake -DBUILD= -DPREFIX= -P
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/Steps.cmake")

file(REMOVE_RECURSE "${PREFIX}" "${PREFIX}.staging")
step(install ${CMAKE_COMMAND} --install "${BUILD}" --component perfkit --prefix "${PREFIX}.staging")
file(RENAME "${PREFIX}.staging" "${PREFIX}")
