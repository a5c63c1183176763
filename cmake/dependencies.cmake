# Everything the library needs. The list in cmake/widelimitConfig.cmake.in repeats it for consumers: a static
# library hands its private dependencies on to the linker.
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(Boost 1.74 REQUIRED)
find_package(xtensor REQUIRED)
find_package(hwy REQUIRED)
find_package(TBB REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(widelimit_openblas REQUIRED IMPORTED_TARGET openblas)
pkg_check_modules(widelimit_lapacke REQUIRED IMPORTED_TARGET lapacke)
pkg_check_modules(widelimit_nlopt REQUIRED IMPORTED_TARGET nlopt)
