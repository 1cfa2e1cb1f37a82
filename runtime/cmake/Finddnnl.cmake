# Imports oneDNN as DNNL::dnnl. Debian's own package configuration insists on
# OpenCL, which the CPU engine does not use.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(DNNL_LIBRARY dnnl)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(dnnl REQUIRED_VARS DNNL_LIBRARY DNNL_INCLUDE_DIR)
mark_as_advanced(DNNL_INCLUDE_DIR DNNL_LIBRARY)
if(dnnl_FOUND AND NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES
    IMPORTED_LOCATION ${DNNL_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
endif()
