# Compiles examples/quickstart.cpp with what pkg-config says of the installed library, after its folder was moved, and
# runs it: cmake -DSOURCE= -DPREFIX= -DCOMPILER= -DWORK= -P pkg_config.cmake
file(REMOVE_RECURSE ${WORK})
file(COPY ${PREFIX}/ DESTINATION ${WORK}/moved)
file(GLOB_RECURSE pc ${WORK}/moved/*/widelimit.pc)
cmake_path(GET pc PARENT_PATH folder)
set(ENV{PKG_CONFIG_PATH} ${folder})
execute_process(COMMAND pkg-config --cflags --libs widelimit OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
execute_process(COMMAND ${COMPILER} -O1 ${SOURCE}/examples/quickstart.cpp -o ${WORK}/quickstart ${flags}
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${WORK}/quickstart OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
if(NOT output MATCHES "^1\\.2579 1\\.1408 1\\.2104\n")
  message(FATAL_ERROR "the example printed ${output}")
endif()
