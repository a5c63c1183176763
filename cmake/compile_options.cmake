# Release builds whose assertions, those of Eigen above all, hold: continuous integration is one.
option(WIDELIMIT_ASSERTIONS "Keep assertions in every build type" OFF)

# What was compiled once with the same flags is taken from the cache, in other build folders and after a change of branch as well.
option(WIDELIMIT_CCACHE "Compile through ccache where it is found" OFF)
if(WIDELIMIT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(WIDELIMIT_CCACHE_PROGRAM ccache)
  mark_as_advanced(WIDELIMIT_CCACHE_PROGRAM)
  if(WIDELIMIT_CCACHE_PROGRAM)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${WIDELIMIT_CCACHE_PROGRAM})
  endif()
endif()

# Warnings, sanitizers and what the compiler spends, applied to our own targets only and never exported.
function(widelimit_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion)
  # GCC searches its own memory for garbage from 128 MB on, and finds little: a seventh of the time to compile, for which
  # it takes a quarter more memory (1.1 GB for most files of the library).
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1000000>)
  if(WIDELIMIT_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(WIDELIMIT_ASSERTIONS)
    target_compile_options(${target} PRIVATE -UNDEBUG)
  endif()
  if(WIDELIMIT_SANITIZE)
    set(sanitizers address,undefined)
    if(WIDELIMIT_SANITIZE STREQUAL thread)
      set(sanitizers thread)
      target_include_directories(${target} BEFORE PRIVATE ${PROJECT_SOURCE_DIR}/tests/thread_sanitizer)
      # Of fences in oneTBB, which this sanitizer does not know.
      target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
    endif()
    target_compile_options(${target} PRIVATE -fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    # With sanitizers GCC takes Eigen's moved matrices for uninitialised.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    target_link_options(${target} PRIVATE -fsanitize=${sanitizers})
  endif()
  if(WIDELIMIT_BUILD_FUZZERS)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# Compiles several files of a target as one: headers are read once for all of them, and a full build takes half the
# time. Names in anonymous namespaces must then differ within a target, and a missing #include can hide behind a
# neighbour's: clang-tidy reads file by file, and so should whoever edits a file at a time (WIDELIMIT_UNITY_BUILD=OFF).
option(WIDELIMIT_UNITY_BUILD "Compile several source files as one" ${PROJECT_IS_TOP_LEVEL})
# widelimit_unity_build(TARGET [FILES]): as many files a unit as given, or ten.
function(widelimit_unity_build target)
  set(files 10)
  if(ARGC GREATER 1)
    set(files ${ARGV1})
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${WIDELIMIT_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE ${files})
endfunction()

# Reads the headers that most files include once for all files of a target, and of those that take them over: a second less
# for each unit. Not by default for who edits single files, or has a compiler cache: whatever changes these headers or the flags
# compiles everything again, and caches want to be told of it (ccache: sloppiness = pch_defines,time_macros).
set(precompiled_headers OFF)
if(PROJECT_IS_TOP_LEVEL AND WIDELIMIT_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(precompiled_headers ON)
endif()
option(WIDELIMIT_PRECOMPILED_HEADERS "Compile the headers that most files include once for many of them (GCC)" ${precompiled_headers})
if(WIDELIMIT_PRECOMPILED_HEADERS AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  message(FATAL_ERROR "WIDELIMIT_PRECOMPILED_HEADERS is for GCC: other compilers want the same definitions in all targets "
                      "that share such headers; switch it off for ${CMAKE_CXX_COMPILER_ID}")
endif()
# GCC 12 takes what it inlines from precompiled headers for code of the project, and warns of its own strings.
function(widelimit_without_false_warnings target)
  target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow)
endfunction()
# widelimit_precompiled_headers(TARGET [HEADERS]): the common headers and these. nlohmann/json.hpp does not pay: most of its
# time goes into templates that each unit makes anew.
function(widelimit_precompiled_headers target)
  if(WIDELIMIT_PRECOMPILED_HEADERS)
    widelimit_without_false_warnings(${target})
    target_precompile_headers(${target} PRIVATE
      <algorithm> <array> <cmath> <cstddef> <cstdint> <filesystem> <fstream> <functional> <limits> <map> <memory> <numbers>
      <optional> <set> <span> <stdexcept> <string> <string_view> <utility> <variant> <vector>
      <Eigen/Core> <fmt/format.h> <xtensor/xarray.hpp> ${ARGN})
  endif()
endfunction()
# widelimit_reuse_precompiled_headers(TARGET FROM): those of a target that is compiled with the same flags.
function(widelimit_reuse_precompiled_headers target from)
  if(WIDELIMIT_PRECOMPILED_HEADERS)
    widelimit_without_false_warnings(${target})
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()

# For tests, examples and the program, whose own loops are not what takes the time: half the time to compile. GCC's
# -Wmaybe-uninitialized needs more optimisation than this to be right.
function(widelimit_light_optimisation target)
  target_compile_options(${target} PRIVATE
    $<$<CONFIG:Release>:-O1> $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endfunction()

# A project that adds this one may have no build type and no flags: kernels without optimisation would take it fifty
# times as long.
function(widelimit_optimise_without_build_type target)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND NOT CMAKE_CXX_FLAGS MATCHES "-O")
    target_compile_options(${target} PRIVATE -O3)
    target_compile_definitions(${target} PRIVATE NDEBUG)
  endif()
endfunction()
