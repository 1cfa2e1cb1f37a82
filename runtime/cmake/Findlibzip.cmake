# Imports libzip as libzip::zip. Debian's own package configuration insists on
# the command-line tools, which are in other packages.
find_path(LIBZIP_INCLUDE_DIR zip.h)
find_library(LIBZIP_LIBRARY zip)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(libzip REQUIRED_VARS LIBZIP_LIBRARY LIBZIP_INCLUDE_DIR)
mark_as_advanced(LIBZIP_INCLUDE_DIR LIBZIP_LIBRARY)
if(libzip_FOUND AND NOT TARGET libzip::zip)
  add_library(libzip::zip UNKNOWN IMPORTED)
  set_target_properties(libzip::zip PROPERTIES
    IMPORTED_LOCATION ${LIBZIP_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${LIBZIP_INCLUDE_DIR})
endif()
