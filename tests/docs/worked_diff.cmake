# Checks that the ```diff block of PAGE applies to the current folder. PATCH: a file to write it to.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/fenced_block.cmake)
fenced_block(${PAGE} diff text)
file(WRITE ${PATCH} "${text}")
execute_process(COMMAND ${GIT} apply --check ${PATCH} RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "The diff of ${PAGE} no longer applies: see above, and mend the page.")
endif()
