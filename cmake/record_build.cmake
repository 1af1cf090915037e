# Run by each build: writes OUTPUT with VERSION and the commit of SOURCE, if that changes anything.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit RESULT_VARIABLE status
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT status EQUAL 0)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#pragma once
#define TENON_VERSION \"@VERSION@\"
#define TENON_COMMIT \"@commit@\"
" @ONLY)
