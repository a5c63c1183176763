# Debian packages (cpack in a build folder, make deb): the program, the program for many machines, the library.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME widelimit)
set(CPACK_PACKAGE_VERSION ${WIDELIMIT_SORTED_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_VENDOR widelimit)
# There is no address yet; a release to strangers needs one (docs/releasing.md).
set(CPACK_PACKAGE_CONTACT "The widelimit authors")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL development)
# The licences of each package, those of the libraries that are compiled in included, and a list of these where Debian's
# users look for them. Without Python they cannot be made, and there are no packages.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(NOT Python3_Interpreter_FOUND)
  message(STATUS "No Debian packages: their licences are put together by Python, which was not found")
  return()
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/scripts/licences.py
             ${PROJECT_SOURCE_DIR}/licences/components.json)
function(install_licences package component part)
  set(folder ${PROJECT_BINARY_DIR}/licences/${part})
  execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/licences.py write ${PROJECT_SOURCE_DIR} ${part} ${folder}
                  COMMAND_ERROR_IS_FATAL ANY)
  install(FILES ${folder}/copyright ${folder}/sbom.spdx.json DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
          COMPONENT ${component})
endfunction()
install_licences(libwidelimit-dev development library)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libwidelimit-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
# Whoever links the library compiles with its headers' libraries and links those it is made of.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libeigen3-dev, libxtensor-dev, nlohmann-json3-dev, libboost-dev, libhwy-dev, libtbb-dev, libfmt-dev, zlib1g-dev, libssl-dev, libopenblas-dev, liblapacke-dev, libnlopt-cxx-dev, pkg-config")
if(TARGET widelimit_program)
  list(APPEND CPACK_COMPONENTS_ALL program)
  install_licences(widelimit program program)
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME widelimit)
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS gnuplot-nox)
endif()
if(TARGET widelimit_mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
  install_licences(widelimit-mpi mpi mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_NAME widelimit-mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_SECTION science)
  set(CPACK_DEBIAN_MPI_PACKAGE_RECOMMENDS openmpi-bin)
endif()
include(CPack)
# Its target would pack the whole folder, whatever lies in it; `make wheel` makes the source archive, of tracked files.
file(REMOVE ${PROJECT_BINARY_DIR}/CPackSourceConfig.cmake)
