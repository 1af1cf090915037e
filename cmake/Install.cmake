# `cmake --install` and the package files, so that another project can say find_package(Tenon).
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Tenon)

# One list of folders for the build tree and for the installed one. A list that CMake replaces at install time has an
# empty element in the build tree, a mark of its own, which the loader reads as the current folder.
set(installed tenon)
if(TARGET tenon_cli)
  list(APPEND installed tenon_cli)
endif()
set_target_properties(${installed} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH_USE_LINK_PATH ON)
get_target_property(library_type tenon TYPE)
if(TARGET tenon_cli AND library_type STREQUAL "SHARED_LIBRARY")
  # The library lies beside the programs' folder in both trees.
  file(RELATIVE_PATH library_from_programs ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(tenon_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${library_from_programs}")
  set_target_properties(tenon PROPERTIES LIBRARY_OUTPUT_DIRECTORY
                        ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${library_from_programs})
endif()

install(TARGETS tenon EXPORT TenonTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
                                          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET tenon_cli)
  install(TARGETS tenon_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES ${PROJECT_BINARY_DIR}/tenon.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tenon DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(EXISTS ${PROJECT_SOURCE_DIR}/ir/ops.def)
  install(FILES ${PROJECT_SOURCE_DIR}/ir/ops.def DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tenon)
endif()

# Pages and examples lie beside each other as they do here, so that links between them hold.
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD_PARTY.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
install(CODE "execute_process(COMMAND \"${CMAKE_COMMAND}\" \"-DHEADERS=${PROJECT_SOURCE_DIR}/include/tenon\"
  \"-DOUTPUT=\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}/docs/reference.md\"
  -P \"${PROJECT_SOURCE_DIR}/cmake/reference.cmake\" COMMAND_ERROR_IS_FATAL ANY)")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
        PATTERN "__pycache__" EXCLUDE PATTERN "demo.sh" EXCLUDE)  # the demo runs in a build folder

string(COMPARE EQUAL ${library_type} "STATIC_LIBRARY" TENON_IS_STATIC)  # then users link our dependencies too
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/TenonConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/package/TenonConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/TenonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/TenonConfig.cmake ${PROJECT_BINARY_DIR}/package/TenonConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/FindSleef.cmake ${PROJECT_SOURCE_DIR}/cmake/FindLibzip.cmake
        DESTINATION ${package_dir})
install(EXPORT TenonTargets NAMESPACE Tenon:: DESTINATION ${package_dir})
