# Each tests/fuzz/<name>_fuzz.cpp defines LLVMFuzzerTestOneInput and becomes tenon_<name>_fuzz, seeded from
# tests/fuzz/corpus/<name>/. With TENON_LIBFUZZER (clang) it is driven by libFuzzer, otherwise by standalone_main.cpp.
# The test fuzz_<name> runs it for TENON_FUZZ_SECONDS.
file(GLOB fuzz_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_fuzz.cpp)
math(EXPR fuzz_timeout "${TENON_FUZZ_SECONDS} * 3 + 120")
foreach(source IN LISTS fuzz_sources)
  get_filename_component(program ${source} NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" name ${program})
  set(corpus ${CMAKE_CURRENT_LIST_DIR}/corpus/${name})
  add_executable(tenon_${program} ${source})
  tenon_warnings(tenon_${program})
  target_link_libraries(tenon_${program} PRIVATE tenon_test_harness)
  if(TENON_LIBFUZZER)
    target_link_options(tenon_${program} PRIVATE -fsanitize=fuzzer)
    set(found ${PROJECT_BINARY_DIR}/fuzz/${name})  # new inputs that libFuzzer finds interesting go here
    file(MAKE_DIRECTORY ${found})
    set(arguments -max_total_time=${TENON_FUZZ_SECONDS} -timeout=10 -rss_limit_mb=4096 -print_final_stats=1
                  -artifact_prefix=${found}/ ${found})
    if(EXISTS ${corpus})
      list(APPEND arguments ${corpus})
    endif()
  else()
    target_sources(tenon_${program} PRIVATE ${CMAKE_CURRENT_LIST_DIR}/standalone_main.cpp)
    set(arguments ${corpus} ${TENON_FUZZ_SECONDS})
  endif()
  add_test(NAME fuzz_${name} COMMAND tenon_${program} ${arguments} WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
  set_tests_properties(fuzz_${name} PROPERTIES TIMEOUT ${fuzz_timeout} LABELS fuzz ENVIRONMENT "${TENON_TEST_ENVIRONMENT}")
endforeach()
