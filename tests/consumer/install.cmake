# Installs what was built, and moves it: an installed tree must not know where it was. cmake -DBUILD= -DPREFIX= -P
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/Steps.cmake")

file(REMOVE_RECURSE "${PREFIX}" "${PREFIX}.staging")
step(install ${CMAKE_COMMAND} --install "${BUILD}" --component perfkit --prefix "${PREFIX}.staging")
file(RENAME "${PREFIX}.staging" "${PREFIX}")
