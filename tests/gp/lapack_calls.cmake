# cmake -DNM=... -DLIBRARY=... -P lapack_calls.cmake
#
# The library must call LAPACKE in its _work forms only: the plain ones look for NaN with 32-bit indices, which
# overflow for matrices of 46,342 rows and more. Such a matrix takes 17 GB, so what is tested is who is called.
foreach(option "" -D)
  execute_process(COMMAND ${NM} ${option} ${LIBRARY} OUTPUT_VARIABLE symbols ERROR_QUIET)
  string(APPEND listing "${symbols}")
endforeach()
string(REGEX MATCHALL "U LAPACKE_[A-Za-z0-9_]+" calls "${listing}")
if(NOT calls)
  message(FATAL_ERROR "${LIBRARY}: no call of LAPACKE was found, so there is nothing to judge")
endif()
list(REMOVE_DUPLICATES calls)
set(checked ${calls})
list(FILTER checked EXCLUDE REGEX "_work$")
if(checked)
  message(FATAL_ERROR "${LIBRARY}: expected LAPACKE's _work forms only, found: ${checked}")
endif()
message("${calls}")
