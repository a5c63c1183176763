# Builds and runs the consumer against the library: installed from BUILD into WORK (FROM=package), or added as a
# subdirectory (FROM=subdirectory).
file(REMOVE_RECURSE ${WORK})
set(from package)
if(FROM STREQUAL "subdirectory")
  set(from ${SOURCE})
else()
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix COMMAND_ERROR_IS_FATAL ANY)
endif()
if(SANITIZE)
  set(flags -DCMAKE_CXX_FLAGS=-fsanitize=address,undefined)
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE}/tests/consumer -B ${WORK}/build -DWIDELIMIT_FROM=${from}
                        -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_BUILD_TYPE=Release -DWIDELIMIT_UNITY_BUILD=ON ${flags}
                        COMMAND_ERROR_IS_FATAL ANY)
if(EXISTS ${WORK}/build/widelimit/tests OR EXISTS ${WORK}/build/widelimit/src/cli)
  message(FATAL_ERROR "added as a subdirectory, the library must leave out its tests and program")
endif()
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build --parallel 2 COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${WORK}/build/consumer COMMAND_ERROR_IS_FATAL ANY)
