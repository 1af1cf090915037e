# tenon_random_cases: random graphs as files, and a count of what they hold (docs/coverage.md).
file(GLOB cases CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
add_executable(tenon_random_cases ${cases})
tenon_warnings(tenon_random_cases)
target_link_libraries(tenon_random_cases PRIVATE tenon_test_harness)
