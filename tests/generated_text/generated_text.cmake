# tenon_generated_text: what is generated for every graph of the repository, to compare two commits.
add_executable(tenon_generated_text ${CMAKE_CURRENT_LIST_DIR}/main.cpp)
tenon_warnings(tenon_generated_text)
target_link_libraries(tenon_generated_text PRIVATE tenon_test_harness)
