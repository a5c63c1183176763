# Warnings and sanitizers, applied to our own targets only and never exported.
function(widelimit_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion)
  if(WIDELIMIT_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(WIDELIMIT_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=address,undefined)
  endif()
endfunction()

# What most files include and none of it ours, precompiled: it halves the time of a full build. A header of the
# project is never in the list, so a missing #include of our own is never hidden; the sanitizer build and
# clang-tidy go without (WIDELIMIT_PRECOMPILE_HEADERS=OFF), so a missing system #include isn't either.
option(WIDELIMIT_PRECOMPILE_HEADERS "Precompile the system headers most files include" ${PROJECT_IS_TOP_LEVEL})
function(widelimit_precompile target)
  if(WIDELIMIT_PRECOMPILE_HEADERS)
    target_precompile_headers(${target} PRIVATE <algorithm> <cmath> <filesystem> <fstream> <functional> <map> <memory>
      <optional> <random> <sstream> <string> <vector> <Eigen/Dense> <fmt/format.h> <nlohmann/json.hpp> ${ARGN})
  endif()
endfunction()

# As widelimit_precompile, with what another target has already precompiled under the same flags.
function(widelimit_reuse_precompiled target other)
  if(WIDELIMIT_PRECOMPILE_HEADERS)
    target_precompile_headers(${target} REUSE_FROM ${other})
  endif()
endfunction()
