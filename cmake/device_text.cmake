# widelimit_device_text(TARGET FILE.cl...): a header kernel/backends/device/cl/FILE.hpp for each file, with the parts of OpenCL programs
# that it holds as constants of namespace widelimit. A part begins with a line `//// name`; lines that begin with /// say
# what it is, and stay out of the program.
function(widelimit_device_text target)
  foreach(file ${ARGN})
    file(READ ${file} text)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    string(REGEX REPLACE "^[^\n]*\n//// ([a-z_]+)\n" "inline constexpr const char* \\1 = R\"CL(\n" text "${text}")
    string(REGEX REPLACE "//// ([a-z_]+)\n" ")CL\";\ninline constexpr const char* \\1 = R\"CL(\n" text "${text}")
    string(REGEX REPLACE "\n///[^\n]*" "" text "${text}")
    get_filename_component(name ${file} NAME_WE)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/device_text/kernel/backends/device/cl/${name}.hpp @ONLY
         CONTENT "#pragma once\n\nnamespace widelimit {\n\n${text})CL\";\n\n}  // namespace widelimit\n")
  endforeach()
  target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/device_text)
endfunction()
