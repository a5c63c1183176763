# widelimit_older_symbols(TARGET): a program or an extension runs with a glibc of 2.34 and the C++ library of GCC 11, too,
# those of Red Hat 9 and Amazon Linux 2023. Without it two functions ask for later ones (older_symbols.cpp).
include(CheckCXXSymbolExists)
check_cxx_symbol_exists(__GLIBC__ features.h widelimit_has_glibc)
function(widelimit_older_symbols target)
  if(widelimit_has_glibc AND CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64 AND CMAKE_CXX_COMPILER_ID STREQUAL GNU
     AND NOT WIDELIMIT_SANITIZE)
    # A variable that this file sets would not be known where a parent folder calls the function: the Python package does
    # that when it builds the library below itself.
    set(source ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/older_symbols.cpp)
    target_sources(${target} PRIVATE ${source})
    set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    target_link_options(${target} PRIVATE
      LINKER:--wrap=hypot,--wrap=_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE)
  endif()
endfunction()
