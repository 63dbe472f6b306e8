// SPDX-License-Identifier: Apache-2.0
//
// What nearly every unit runs, in one page: linkers put sections of these names together,
// in the order of the names. Where processes take turns on a CPU, each page costs a walk
// through the page tables once a unit.
#pragma once

#define CULPRIT_NEAR_CODE __attribute__((section(".text.sorted.culprit.1")))
// Of these there may be one.
#define CULPRIT_NEAR_CODE_BEGIN __attribute__((section(".text.sorted.culprit.0"), aligned(4096)))
