# The library as strangers use it, in programs compiled with flags of their own. What the machine's compilers or
# processor do not know is reported as skipped.

set(consumer_prefix ${PROJECT_BINARY_DIR}/consumer/prefix)
add_test(NAME consumer/install COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${consumer_prefix})
set_tests_properties(consumer/install PROPERTIES LABELS unit FIXTURES_SETUP consumer_package)

# widelimit_consumer_test(NAME LABEL -D... ): see run.cmake for the variables.
function(widelimit_consumer_test name label)
  add_test(NAME consumer/${name}
           COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DGENERATOR=${CMAKE_GENERATOR}
                   -DWORK=${PROJECT_BINARY_DIR}/consumer/${name} ${ARGN} -P ${PROJECT_SOURCE_DIR}/tests/consumer/run.cmake)
  set_tests_properties(consumer/${name} PROPERTIES LABELS ${label} SKIP_REGULAR_EXPRESSION "skipped:")
endfunction()

# A program that finds the installed library.
function(widelimit_package_test name label compiler flags)
  widelimit_consumer_test(package/${name} ${label} -DPREFIX=${consumer_prefix} -DCOMPILER=${compiler} -DFLAGS=${flags})
  set_tests_properties(consumer/package/${name} PROPERTIES FIXTURES_REQUIRED consumer_package COST 15)
endfunction()

if(WIDELIMIT_SANITIZE)
  widelimit_package_test(sanitized unit ${CMAKE_CXX_COMPILER} "-O1 -fsanitize=address,undefined")
  return()
endif()

add_test(NAME consumer/refused
         COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DWORK=${PROJECT_BINARY_DIR}/consumer/refused
                 -DCOMPILER=${CMAKE_CXX_COMPILER} "-DEIGEN=-isystem ${EIGEN3_INCLUDE_DIRS}"
                 -P ${PROJECT_SOURCE_DIR}/tests/consumer/refused.cmake)
set_tests_properties(consumer/refused PROPERTIES LABELS unit)

widelimit_package_test(plain unit ${CMAKE_CXX_COMPILER} -O1)
widelimit_package_test(native unit ${CMAKE_CXX_COMPILER} "-O1 -march=native")
widelimit_package_test(address unit ${CMAKE_CXX_COMPILER} "-O1 -fsanitize=address")
widelimit_package_test(clang-avx2 unit clang++ "-O1 -mavx2 -mfma")

add_test(NAME consumer/pkg_config
         COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DPREFIX=${consumer_prefix}
                 -DCOMPILER=${CMAKE_CXX_COMPILER} -DWORK=${PROJECT_BINARY_DIR}/consumer/pkg_config
                 -P ${PROJECT_SOURCE_DIR}/tests/consumer/pkg_config.cmake)
set_tests_properties(consumer/pkg_config PROPERTIES LABELS unit FIXTURES_REQUIRED consumer_package)

foreach(compiler g++ clang++)
  foreach(flags -O2 "-O0 -march=native" "-O2 -march=native" "-O2 -mavx2 -mfma" "-O2 -msse4.2" "-O2 -march=x86-64-v3")
    string(REGEX REPLACE "[ =]" "" name ${compiler}${flags})
    widelimit_package_test(${name} slow ${compiler} ${flags})
    widelimit_package_test(${name}-address slow ${compiler} "${flags} -fsanitize=address")
  endforeach()
endforeach()

# These build the library once more each: without a build type for a program with flags of its own, and with flags
# for everything.
widelimit_consumer_test(subdirectory/untyped slow -DCOMPILER=${CMAKE_CXX_COMPILER} "-DCONSUMER_FLAGS=-O2 -march=native")
widelimit_consumer_test(subdirectory/native-address slow -DCOMPILER=${CMAKE_CXX_COMPILER} -DBUILD_TYPE=Release
                        "-DFLAGS=-march=native -fsanitize=address")
