# Programs that handle Eigen's memory otherwise than the library are refused: by the compiler, with a message that
# says what to do, or, where the library was built with the compiler's own alignment, by the linker. Others run.
# cmake -DSOURCE=... -DWORK=... -DCOMPILER=... "-DEIGEN=-isystem DIR" -P refused.cmake
file(REMOVE_RECURSE ${WORK})
separate_arguments(eigen UNIX_COMMAND "${EIGEN}")
# stableNorm() copies into a temporary of fixed storage and takes it for aligned like any other vector: Eigen's assertions,
# which these programs have, fail where the two alignments differ.
file(WRITE ${WORK}/program.cpp [[
#include <widelimit/matrix.hpp>
int main() {
  const widelimit::Vector<double> vector = widelimit::Vector<double>::Ones(13);
  const widelimit::Matrix<float> matrix = widelimit::Matrix<float>::Ones(13, 7);
  return vector.stableNorm() > 0 && (2 * matrix).stableNorm() > 0 ? 0 : 1;
}
]])

# build(NAME FIXED FLAGS...): compiles program.cpp with the flags and links it with the library's part of the check.
function(build name fixed)
  set(folder ${WORK}/${name})
  file(WRITE ${folder}/widelimit/build_options.hpp "#define WIDELIMIT_FIXED_EIGEN_ALIGNMENT ${fixed}\n")
  set(library_flags)
  if(fixed)
    set(library_flags -DEIGEN_MAX_ALIGN_BYTES=64 -DEIGEN_MAX_STATIC_ALIGN_BYTES=64)
  endif()
  set(compile ${COMPILER} -std=c++20 -I${folder} -I${SOURCE}/include ${eigen})
  execute_process(COMMAND ${compile} ${library_flags} -c ${SOURCE}/src/numerics/eigen_alignment.cpp -o ${folder}/library.o
                  COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${compile} ${ARGN} ${WORK}/program.cpp ${folder}/library.o -o ${folder}/program
                  RESULT_VARIABLE result ERROR_VARIABLE errors)
  set(result ${result} PARENT_SCOPE)
  set(errors "${errors}" PARENT_SCOPE)
endfunction()

function(expect_built name)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "expected a program, got\n${errors}")
  endif()
  execute_process(COMMAND ${WORK}/${name}/program COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(expect_refused reason)
  if(result EQUAL 0)
    message(FATAL_ERROR "a program with another alignment was built")
  elseif(NOT errors MATCHES "${reason}")
    message(FATAL_ERROR "expected an error with '${reason}', got\n${errors}")
  endif()
endfunction()

build(fixed-right 1 -DEIGEN_MAX_ALIGN_BYTES=64 -DEIGEN_MAX_STATIC_ALIGN_BYTES=64 -O1)
expect_built(fixed-right)
build(fixed-without 1)
expect_refused("linking the CMake target widelimit::widelimit")
build(fixed-malloc 1 -DEIGEN_MAX_ALIGN_BYTES=64 -DEIGEN_MAX_STATIC_ALIGN_BYTES=64 -DEIGEN_MALLOC_ALREADY_ALIGNED=1)
expect_refused("linking the CMake target widelimit::widelimit")
build(compilers-right 0 -O1)
expect_built(compilers-right)
build(compilers-other 0 -DEIGEN_MAX_ALIGN_BYTES=32)  # what -mavx makes of it
expect_refused("compiled_with_the_alignment_of_the_library")
