# tenon_random_cases: random graphs as files, and a count of what they hold. For tests/numpy_oracle and docs/coverage.md.
file(GLOB cases CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
add_executable(tenon_random_cases ${cases})
tenon_warnings(tenon_random_cases)
target_link_libraries(tenon_random_cases PRIVATE tenon_test_harness)

# The command's results against NumPy's. Both are skipped where there is no NumPy.
find_program(TENON_PYTHON NAMES python3)
if(TENON_PYTHON AND TARGET tenon_cli AND TENON_CPU)
  set(check ${TENON_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/../numpy_oracle/check.py $<TARGET_FILE:tenon_cli>
            $<TARGET_FILE:tenon_random_cases>)
  add_test(NAME numpy_oracle COMMAND ${check} --count 120)
  add_test(NAME numpy_operators COMMAND ${check} --operators)
  set_tests_properties(numpy_oracle numpy_operators PROPERTIES TIMEOUT 900 LABELS random SKIP_RETURN_CODE 77
                       ENVIRONMENT "${TENON_TEST_ENVIRONMENT}")
endif()
