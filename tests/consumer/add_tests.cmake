# The library as a stranger uses it. Needs the library built; the subdirectory case builds it once more and is slow.
foreach(from package subdirectory)
  add_test(NAME consumer/${from}
           COMMAND ${CMAKE_COMMAND} -DFROM=${from} -DSOURCE=${PROJECT_SOURCE_DIR} -DBUILD=${PROJECT_BINARY_DIR}
                   -DWORK=${PROJECT_BINARY_DIR}/consumer-${from} -DGENERATOR=${CMAKE_GENERATOR}
                   -DSANITIZE=$<BOOL:${WIDELIMIT_SANITIZE}> -P ${PROJECT_SOURCE_DIR}/tests/consumer/run.cmake)
endforeach()
set_tests_properties(consumer/package PROPERTIES LABELS unit)
set_tests_properties(consumer/subdirectory PROPERTIES LABELS slow)
