# The test `package`: installs Tenon into a temporary prefix and builds against it, by the lines of README.md and
# docs/install.md, the README's program and an example; then the project in this folder, which looks closer.
add_test(NAME package COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DPROJECT=${CMAKE_CURRENT_LIST_DIR}
                              -DCOMPILER=${CMAKE_CXX_COMPILER} -DBUILD_TYPE=${CMAKE_BUILD_TYPE}
                              -DSANITIZE=${TENON_SANITIZE} -DGENERATOR=${CMAKE_GENERATOR}
                              -DOBJDUMP=${CMAKE_OBJDUMP}
                              -DCHECK_SEARCH_PATHS=${PROJECT_SOURCE_DIR}/cmake/search_paths.cmake
                              -DSOURCE=${PROJECT_SOURCE_DIR} -DRUNS=${TENON_CPU}
                              -P ${CMAKE_CURRENT_LIST_DIR}/check.cmake)
set_tests_properties(package PROPERTIES TIMEOUT 300 LABELS package ENVIRONMENT "${TENON_TEST_ENVIRONMENT}")
