# Install and export: find_package(widelimit) gives widelimit::widelimit.
include(CMakePackageConfigHelpers)

install(TARGETS widelimit EXPORT widelimitTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ ${PROJECT_BINARY_DIR}/include/
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
install(EXPORT widelimitTargets NAMESPACE widelimit::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/widelimit)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/widelimitConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/widelimitConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/widelimit)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/widelimitConfigVersion.cmake COMPATIBILITY SameMinorVersion)
# find_package takes the build folder, too (widelimit_DIR): the Python package is built so.
export(EXPORT widelimitTargets NAMESPACE widelimit:: FILE ${PROJECT_BINARY_DIR}/widelimitTargets.cmake)
install(FILES ${PROJECT_BINARY_DIR}/widelimitConfig.cmake ${PROJECT_BINARY_DIR}/widelimitConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/widelimit)

if(TARGET widelimit_mpi)
  install(TARGETS widelimit_mpi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET widelimit_program)
  install(TARGETS widelimit_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
