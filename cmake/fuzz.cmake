# SPDX-License-Identifier: Apache-2.0
# A fuzz target a parser: src/**/x_fuzz.cc. make_seeds writes what they start
# from (tests/fuzz.sh). Needs clang; all code is instrumented for coverage.
file(GLOB_RECURSE fuzz_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*_fuzz.cc)
foreach(source ${fuzz_sources})
  get_filename_component(name ${source} NAME_WE)
  get_filename_component(folder ${source} DIRECTORY)
  get_filename_component(folder ${folder} NAME)
  if(TARGET ${name})
    set(name ${folder}_${name})  # two folders have a parser of that name
  endif()
  add_executable(${name} ${source})
  if(folder STREQUAL runtime)
    set(folder guard_runtime)  # src/guard/runtime is a library of its own
  endif()
  target_link_libraries(${name} PRIVATE culprit_${folder})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endforeach()
add_executable(make_seeds tests/make_seeds.cc)
target_link_libraries(make_seeds PRIVATE culprit_import culprit_export culprit_guard culprit_scale)
