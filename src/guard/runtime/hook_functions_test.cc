// SPDX-License-Identifier: Apache-2.0
// What runs at patched entries, as it was compiled: no vector or floating-point
// register is touched on the way (the trampoline saves general ones only), except
// behind CallSavingVectors, which saves them. Read from the machine code, because
// that is what counts.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "guard/runtime/arm64_instruction.h"
#include "guard/runtime/code_address.h"
#include "guard/runtime/function_starts.h"
#include "guard/runtime/guard_hit.h"
#include "guard/runtime/training_entry.h"
#include "guard/runtime/vector_state.h"
#include "guard/runtime/x86_instruction.h"
#if defined(__aarch64__) && defined(CULPRIT_HAVE_CAPSTONE)
#include <capstone/capstone.h>
#elif defined(__x86_64__) && defined(CULPRIT_HAVE_ZYDIS)
#include <Zydis/Zydis.h>
#endif

namespace culprit::guard::runtime::TEST_FILE {
namespace {

#if defined(__aarch64__) && defined(CULPRIT_HAVE_CAPSTONE)
#define CULPRIT_CAN_READ_CODE 1

// Names of forbidden registers in an instruction; "" if it is clean. x18 belongs
// to the platform and may not be used at all.
class Reader {
 public:
  Reader() {
    cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &handle_);
    cs_option(handle_, CS_OPT_DETAIL, CS_OPT_ON);
  }
  ~Reader() { cs_close(&handle_); }

  std::string Forbidden(uint64_t address, uint64_t& length, uint64_t& target) {
    cs_insn* instruction = nullptr;
    length = 4;
    target = 0;
    const auto* code = BytesAt(address);
    if (cs_disasm(handle_, code, 4, address, 1, &instruction) != 1) return "undecodable";
    std::string found;
    const cs_arm64& detail = instruction->detail->arm64;
    for (int i = 0; i < detail.op_count; ++i) {
      if (detail.operands[i].type != ARM64_OP_REG) continue;
      const std::string name = cs_reg_name(handle_, detail.operands[i].reg);
      if (name.find_first_of("vqdshb") == 0 && name != "sp") found = name;
      if (name == "x18" || name == "w18") found = name;
    }
    cs_free(instruction, 1);
    uint32_t word = 0;
    std::memcpy(&word, code, 4);
    arm64::BranchTarget(word, address, target);
    return found;
  }

 private:
  csh handle_ = 0;
};

#elif defined(__x86_64__) && defined(CULPRIT_HAVE_ZYDIS)
#define CULPRIT_CAN_READ_CODE 1

class Reader {
 public:
  Reader() { ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64); }

  std::string Forbidden(uint64_t address, uint64_t& length, uint64_t& target) {
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    const auto* code = BytesAt(address);
    length = 1;
    target = 0;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder_, code, 15, &instruction, operands))) {
      return "undecodable";
    }
    length = instruction.length;
    const x86::Instruction ours = x86::Decode({code, 15});
    if (ours.flow == x86::Flow::kJump || ours.flow == x86::Flow::kCondition ||
        ours.flow == x86::Flow::kCall) {
      target = address + length + static_cast<uint64_t>(ours.relative);
    }
    for (int i = 0; i < instruction.operand_count; ++i) {
      if (operands[i].type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
      switch (ZydisRegisterGetClass(operands[i].reg.value)) {
        case ZYDIS_REGCLASS_X87:
        case ZYDIS_REGCLASS_MMX:
        case ZYDIS_REGCLASS_XMM:
        case ZYDIS_REGCLASS_YMM:
        case ZYDIS_REGCLASS_ZMM:
        case ZYDIS_REGCLASS_MASK:
          return ZydisRegisterGetString(operands[i].reg.value);
        default:
          break;
      }
    }
    return "";
  }

 private:
  ZydisDecoder decoder_;
};
#endif

#if defined(CULPRIT_CAN_READ_CODE)

// From an entry through all it calls and jumps to, up to CallSavingVectors.
void ExpectClean(uint64_t entry, std::set<uint64_t>& seen) {
  MappedArray<FunctionStart> starts;
  const MappedArray<LoadedModule> modules = LoadedModules();
  ASSERT_EQ(ReadFunctionStarts(modules[0], starts), StartsState::kRead);
  const auto boundary = reinterpret_cast<uint64_t>(&culprit_call_saving_vectors);
  Reader reader;
  std::vector<uint64_t> todo = {entry};
  while (!todo.empty()) {
    const uint64_t at = todo.back();
    todo.pop_back();
    if (at == boundary) continue;
    const FunctionStart* function = nullptr;
    for (const FunctionStart& start : starts) {
      if (at >= start.entry && at - start.entry < start.size) function = &start;
    }
    ASSERT_NE(function, nullptr) << "calls what is no function of ours: " << std::hex << at;
    if (!seen.insert(function->entry).second) continue;
    uint64_t length = 0, target = 0;
    for (uint64_t address = function->entry; address < function->entry + function->size;
         address += length) {
      EXPECT_EQ(reader.Forbidden(address, length, target), "")
          << "at " << std::hex << address - modules[0].bias;
      if (target != 0) todo.push_back(target);
    }
  }
}

TEST(HookFunctions, TouchNoVectorRegisterOnTheirWay) {
  std::set<uint64_t> seen;
  ExpectClean(reinterpret_cast<uint64_t>(&TrainingEntry), seen);
  const size_t training = seen.size();
  ExpectClean(reinterpret_cast<uint64_t>(&GuardHit), seen);
  const size_t hits = seen.size();
  ExpectClean(reinterpret_cast<uint64_t>(&CutHit), seen);
  EXPECT_GE(training, 1u);
  EXPECT_GT(hits, training);
  EXPECT_GT(seen.size(), hits);
}

#endif  // CULPRIT_CAN_READ_CODE

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
