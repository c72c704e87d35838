# Finds elfutils' libdw with libelf (Debian: libdw-dev): Libdw::dw, Libdw_FOUND.
find_path(Libdw_INCLUDE_DIR elfutils/libdw.h)
find_library(Libdw_LIBRARY dw)
find_library(Libdw_ELF_LIBRARY elf)
mark_as_advanced(Libdw_INCLUDE_DIR Libdw_LIBRARY Libdw_ELF_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libdw REQUIRED_VARS Libdw_LIBRARY Libdw_ELF_LIBRARY Libdw_INCLUDE_DIR)
if(Libdw_FOUND AND NOT TARGET Libdw::dw)
  add_library(Libdw::dw UNKNOWN IMPORTED)
  set_target_properties(Libdw::dw PROPERTIES IMPORTED_LOCATION "${Libdw_LIBRARY}"
                                             INTERFACE_INCLUDE_DIRECTORIES "${Libdw_INCLUDE_DIR}"
                                             INTERFACE_LINK_LIBRARIES "${Libdw_ELF_LIBRARY}")
endif()
