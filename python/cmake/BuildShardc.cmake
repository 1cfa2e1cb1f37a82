# Builds compiler, runtime and tools from the source tree around this folder, and installs
# them below the build folder, where find_package and its siblings look then.
set(build ${CMAKE_BINARY_DIR}/shardc-build)
set(prefix ${CMAKE_BINARY_DIR}/shardc)
set(targets ShardcRuntime ShardcRuntimeShared shardc-compiler shardc-compile shardc-gen
  shardc-opt shardc-run shardc-checkpoint)
message(STATUS "Building shardc in ${build}: this takes some minutes")
foreach(command
    "${CMAKE_COMMAND};-S;${CMAKE_CURRENT_SOURCE_DIR}/..;-B;${build};-G;Ninja;-DCMAKE_BUILD_TYPE=Release;-DSHARDC_MPI=OFF;-DCMAKE_UNITY_BUILD=ON"
    "${CMAKE_COMMAND};--build;${build};--target;${targets}"
    "${CMAKE_COMMAND};--install;${build};--prefix;${prefix}")
  execute_process(COMMAND ${command} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
list(PREPEND CMAKE_PREFIX_PATH ${prefix})
