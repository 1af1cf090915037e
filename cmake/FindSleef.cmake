# Sleef::sleef, the vector math library. Debian's package of it has no CMake files of its own.
find_path(Sleef_INCLUDE_DIR sleef.h)
find_library(Sleef_LIBRARY sleef)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Sleef REQUIRED_VARS Sleef_LIBRARY Sleef_INCLUDE_DIR)
if(Sleef_FOUND AND NOT TARGET Sleef::sleef)
  add_library(Sleef::sleef UNKNOWN IMPORTED)
  set_target_properties(Sleef::sleef PROPERTIES IMPORTED_LOCATION ${Sleef_LIBRARY}
                                                INTERFACE_INCLUDE_DIRECTORIES ${Sleef_INCLUDE_DIR})
endif()
