# find_package(ShardcRuntime): imports Shardc::ShardcRuntime and its alias
# Shardc::Runtime with the libraries they need.
include(CMakeFindDependencyMacro)
list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})
find_dependency(absl)
find_dependency(libdeflate)
find_dependency(libzip)
find_dependency(Threads)
find_dependency(ZLIB)
include(${CMAKE_CURRENT_LIST_DIR}/ShardcRuntimeTargets.cmake)
add_library(Shardc::Runtime ALIAS Shardc::ShardcRuntime)
