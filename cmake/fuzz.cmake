# SPDX-License-Identifier: Apache-2.0
# A fuzz target a parser: src/**/x_fuzz.cc. Each includes its own seeds, which
# make_seeds writes out (tests/fuzz.sh).
file(GLOB_RECURSE fuzz_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*_fuzz.cc)
foreach(source ${fuzz_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE culprit_cli)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
endforeach()
add_compile_options(-fsanitize=fuzzer-no-link)
add_executable(make_seeds tests/make_seeds.cc)
target_link_libraries(make_seeds PRIVATE culprit_trace)
