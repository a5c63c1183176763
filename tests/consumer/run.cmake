# Builds and runs the consumer: cmake -D... -P run.cmake with
#   SOURCE, GENERATOR   the library's source tree; the generator to use
#   WORK                folder to work in, emptied first
#   PREFIX              where the library is installed; without it the source tree is added as a subdirectory
#   COMPILER            C++ compiler, a name or a path
#   FLAGS               flags for everything that is compiled, blanks between them
#   CONSUMER_FLAGS      the same for the program alone
#   BUILD_TYPE          may be empty
# Prints "skipped: ..." where this machine has no such compiler, or compiler or processor know no such flags.
find_program(compiler ${COMPILER})
if(NOT compiler)
  message("skipped: there is no ${COMPILER} on this machine")
  return()
endif()
separate_arguments(flags UNIX_COMMAND "${FLAGS} ${CONSUMER_FLAGS}")
execute_process(COMMAND ${compiler} ${flags} -x c++ -fsyntax-only /dev/null RESULT_VARIABLE refused ERROR_VARIABLE why)
if(refused)
  message("skipped: ${COMPILER} does not take ${FLAGS} ${CONSUMER_FLAGS}: ${why}")
  return()
endif()

file(REMOVE_RECURSE ${WORK})
set(from ${SOURCE})
if(PREFIX)
  set(from package)
endif()
string(REPLACE " " ";" consumer_flags "${CONSUMER_FLAGS}")
execute_process(COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE}/tests/consumer -B ${WORK} -DWIDELIMIT_FROM=${from}
                        -DCMAKE_CXX_COMPILER=${compiler} -DCMAKE_CXX_FLAGS=${FLAGS} "-DCONSUMER_FLAGS=${consumer_flags}"
                        -DCMAKE_BUILD_TYPE=${BUILD_TYPE} -DCMAKE_PREFIX_PATH=${PREFIX} -DWIDELIMIT_UNITY_BUILD=ON
                        COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK} --parallel 2 COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${WORK}/consumer RESULT_VARIABLE result)
if(result EQUAL 77)
  return()
elseif(NOT result EQUAL 0)
  message(FATAL_ERROR "the program compiled by ${COMPILER} ${FLAGS} ${CONSUMER_FLAGS} ended with ${result}")
endif()

if(NOT PREFIX)
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${WORK} --prefix ${WORK}/installed COMMAND_ERROR_IS_FATAL ANY)
  foreach(unwanted widelimit/tests widelimit/src/cli installed/include)
    if(EXISTS ${WORK}/${unwanted})
      message(FATAL_ERROR "added as a subdirectory, the library must leave out ${unwanted}")
    endif()
  endforeach()
endif()
