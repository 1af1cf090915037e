# Tests of what the pages say: `links` of the pages themselves, `links_that_break` that it finds each mistake of a page
# that has some.
add_test(NAME links COMMAND ${CMAKE_COMMAND} -P ${PROJECT_SOURCE_DIR}/cmake/links.cmake
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
add_test(NAME links_that_break COMMAND ${CMAKE_COMMAND} -P ${PROJECT_SOURCE_DIR}/cmake/links.cmake
         WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR}/broken)
set_tests_properties(links_that_break PROPERTIES PASS_REGULAR_EXPRESSION
  "README.md:5: no file docs/gone.md[^:]*README.md:5: no heading #no-such-heading[^:]*README.md:6: no file ir/gone.h[^:]*README.md:14: no file plot.svg[ \r\n]*$")

# The worked diff of docs/adding-an-operator.md applies to this tree.
find_package(Git QUIET)
if(GIT_FOUND)
  add_test(NAME worked_diff COMMAND ${CMAKE_COMMAND} -DGIT=${GIT_EXECUTABLE} -DPAGE=docs/adding-an-operator.md
                                    -DPATCH=${CMAKE_CURRENT_BINARY_DIR}/worked.diff
                                    -P ${CMAKE_CURRENT_LIST_DIR}/worked_diff.cmake
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(worked_diff PROPERTIES LABELS docs)
endif()
set_tests_properties(links links_that_break PROPERTIES LABELS docs)

# README's `./bootstrap.sh demo`, behind its set-up and build.
if(TENON_CPU AND TENON_PYTHON AND NOT TENON_SANITIZE)
  add_test(NAME demo COMMAND ${PROJECT_SOURCE_DIR}/examples/demo.sh ${PROJECT_BINARY_DIR})
  set_tests_properties(demo PROPERTIES TIMEOUT 900 PROCESSORS 2 LABELS docs ENVIRONMENT "${TENON_TEST_ENVIRONMENT}")
endif()
