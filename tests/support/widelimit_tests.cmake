# widelimit_tests(FOLDER LABEL label FILES a_test.cpp ...) builds one doctest binary from a folder's test files and
# registers one CTest test a file under the given label. Test cases whose name holds "[slow]" are registered
# apart, under the label "slow", and left out of the default run. A test that finds its data or tools missing prints
# "skipped: ..."; CTest then counts the file as skipped, unless a check in it failed. Those whose NAMEs stand in LONG
# take seconds; CTest starts them first, so that the last one does not run alone. Files that start threads, or ask for
# more than one, are labelled "threads" as well and their program hangs on the target threaded_tests: both are what make
# test-tsan builds and runs.
set(WIDELIMIT_STARTS_THREADS "std::j?thread[^a-z_]|std::async|int threads|with_threads|on_threads|seconds_to_stop|[^a-z_]threads = ([2-9]|threads)|set_num_threads")
function(widelimit_tests folder)
  cmake_parse_arguments(ARG "" "LABEL" "FILES;LIBRARIES;LONG" ${ARGN})
  set(target ${folder}_tests)
  add_executable(${target} ${ARG_FILES})
  widelimit_compile_options(${target})
  widelimit_unity_build(${target})
  widelimit_light_optimisation(${target})
  widelimit_reuse_precompiled_headers(${target} widelimit_test_headers)
  target_link_libraries(${target} PRIVATE widelimit_test_main ${ARG_LIBRARIES})
  set(skipped "skipped: .*Status: SUCCESS")
  foreach(file ${ARG_FILES})
    get_filename_component(name ${file} NAME_WE)
    file(STRINGS ${file} cases REGEX "TEST_CASE")
    file(STRINGS ${file} slow_cases REGEX "TEST_CASE.*\\[slow\\]\"")
    file(STRINGS ${file} starts_threads REGEX "${WIDELIMIT_STARTS_THREADS}")
    set(labels ${ARG_LABEL})
    if(starts_threads)
      list(APPEND labels threads)
      add_dependencies(threaded_tests ${target})
    endif()
    if(NOT cases STREQUAL slow_cases)
      add_test(NAME ${folder}/${name} COMMAND ${target} --source-file=*/${name}.cpp --test-case-exclude=*[slow]* --no-intro)
      set_tests_properties(${folder}/${name} PROPERTIES LABELS "${labels}"
                           FAIL_REGULAR_EXPRESSION "test cases: +0 " SKIP_REGULAR_EXPRESSION ${skipped})
      if(name IN_LIST ARG_LONG)
        set_tests_properties(${folder}/${name} PROPERTIES COST 10)
      endif()
    endif()
    if(slow_cases)
      add_test(NAME ${folder}/${name}/slow COMMAND ${target} --source-file=*/${name}.cpp --test-case=*[slow]* --no-intro)
      set_tests_properties(${folder}/${name}/slow PROPERTIES LABELS slow
                           FAIL_REGULAR_EXPRESSION "test cases: +0 " SKIP_REGULAR_EXPRESSION ${skipped})
    endif()
  endforeach()
endfunction()
