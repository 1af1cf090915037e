# `cmake --install` and the package files, so that another project can say find_package(Tenon).
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Tenon)

install(TARGETS tenon EXPORT TenonTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
                                          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET tenon_cli)
  install(TARGETS tenon_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tenon DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(EXISTS ${PROJECT_SOURCE_DIR}/ir/ops.def)
  install(FILES ${PROJECT_SOURCE_DIR}/ir/ops.def DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tenon)
endif()

get_target_property(library_type tenon TYPE)
string(COMPARE EQUAL ${library_type} "STATIC_LIBRARY" TENON_IS_STATIC)  # then users link our dependencies too
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/TenonConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/package/TenonConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/TenonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/TenonConfig.cmake ${PROJECT_BINARY_DIR}/package/TenonConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/FindSleef.cmake DESTINATION ${package_dir})
install(EXPORT TenonTargets NAMESPACE Tenon:: DESTINATION ${package_dir})
