# Install and export: find_package(widelimit) and pkg-config give the library; cpack makes Debian packages of it.
include(CMakePackageConfigHelpers)
set(library COMPONENT development)
# For Debian and pkg-config, which sort 0.3.0~dev0 before 0.3.0.
string(REPLACE .dev ~dev WIDELIMIT_SORTED_VERSION ${WIDELIMIT_VERSION})

install(TARGETS widelimit EXPORT widelimitTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} ${library}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ${library}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} ${library})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ ${PROJECT_BINARY_DIR}/include/
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${library} FILES_MATCHING PATTERN "*.hpp")
install(EXPORT widelimitTargets NAMESPACE widelimit::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/widelimit ${library})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/widelimitConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/widelimitConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/widelimit)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/widelimitConfigVersion.cmake COMPATIBILITY SameMinorVersion)
# find_package takes the build folder, too (widelimit_DIR): the Python package is built so.
export(EXPORT widelimitTargets NAMESPACE widelimit:: FILE ${PROJECT_BINARY_DIR}/widelimitTargets.cmake)
install(FILES ${PROJECT_BINARY_DIR}/widelimitConfig.cmake ${PROJECT_BINARY_DIR}/widelimitConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/widelimit ${library})

# For pkg-config. A folder that has been installed may be moved; a static library's own libraries are its user's.
set(pkgconfig_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH WIDELIMIT_PC_PREFIX /${pkgconfig_folder} /)
set(WIDELIMIT_PC_PUBLIC "eigen3 xtensor nlohmann_json")
set(WIDELIMIT_PC_PRIVATE "libhwy tbb fmt zlib libcrypto openblas lapacke nlopt")
if(NOT BUILD_SHARED_LIBS)
  string(APPEND WIDELIMIT_PC_PUBLIC " ${WIDELIMIT_PC_PRIVATE}")
  set(WIDELIMIT_PC_PRIVATE)
endif()
set(WIDELIMIT_PC_DEFINITIONS)
if(WIDELIMIT_FIXED_EIGEN_ALIGNMENT)
  set(WIDELIMIT_PC_DEFINITIONS " -DEIGEN_MAX_ALIGN_BYTES=64 -DEIGEN_MAX_STATIC_ALIGN_BYTES=64")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/widelimit.pc.in ${PROJECT_BINARY_DIR}/widelimit.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/widelimit.pc DESTINATION ${pkgconfig_folder} ${library})

# All that is installed, and nothing else.
add_custom_target(widelimit_installed DEPENDS widelimit)
if(TARGET widelimit_mpi)
  add_dependencies(widelimit_installed widelimit_mpi)
  install(TARGETS widelimit_mpi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT mpi)
endif()
if(TARGET widelimit_program)
  add_dependencies(widelimit_installed widelimit_program)
  install(TARGETS widelimit_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
  include(cmake/program_files.cmake)
endif()
if(PROJECT_IS_TOP_LEVEL)
  include(cmake/debian_packages.cmake)
endif()
