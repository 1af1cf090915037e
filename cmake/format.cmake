# Checks that every C++ file is formatted (or formats it, with -DFIX=ON). Run in the root of the source tree.
cmake_minimum_required(VERSION 3.25)
file(GLOB_RECURSE files RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} include/*.h ir/*.h ir/*.cpp codegen/*.h codegen/*.cpp
     runtime/*.h runtime/*.cpp src/*.h src/*.cpp tools/*.h tools/*.cpp bench/*.h bench/*.cpp examples/*.cpp tests/*.h
     tests/*.cpp)
set(mode --dry-run --Werror)
if(FIX)
  set(mode -i)
endif()
execute_process(COMMAND ${CLANG_FORMAT} ${mode} ${files} RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "Files above are not formatted: run the build target `format`.")
endif()
