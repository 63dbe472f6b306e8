// SPDX-License-Identifier: Apache-2.0
#include "trace/syscall_operation.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace culprit::trace {
namespace {

struct CallRow {
  std::string_view call;
  uint8_t argument;
  uint32_t mask;            // of the bits that say what is done
  std::string_view prefix;  // of the constants' names, not shown
};

constexpr uint32_t kAllBits = UINT32_MAX;

// By name.
constexpr CallRow kCalls[] = {
    {"arch_prctl", 0, kAllBits, "ARCH_"},
    {"bpf", 0, kAllBits, "BPF_"},
    {"epoll_ctl", 1, kAllBits, "EPOLL_CTL_"},
    {"fcntl", 1, kAllBits, ""},
    {"fcntl64", 1, kAllBits, ""},
    {"flock", 1, kAllBits, ""},
    {"futex", 1, 0x7f, "FUTEX_"},
    {"futex_time64", 1, 0x7f, "FUTEX_"},
    {"io_uring_register", 1, 0x7fffffff, "IORING_"},
    {"ioctl", 1, kAllBits, ""},
    {"ipc", 0, 0xffff, ""},
    {"keyctl", 0, kAllBits, "KEYCTL_"},
    {"madvise", 2, kAllBits, "MADV_"},
    {"membarrier", 0, kAllBits, "MEMBARRIER_CMD_"},
    {"msgctl", 1, 0xff, ""},
    {"prctl", 0, kAllBits, "PR_"},
    {"ptrace", 0, kAllBits, "PTRACE_"},
    {"semctl", 2, 0xff, ""},
    {"shmctl", 1, 0xff, ""},
    {"socketcall", 0, kAllBits, "SYS_"},
};

struct OperationRow {
  uint32_t value;
  std::string_view name;
};

constexpr OperationRow kFutex[] = {{0, "WAIT"},
                                   {1, "WAKE"},
                                   {2, "FD"},
                                   {3, "REQUEUE"},
                                   {4, "CMP_REQUEUE"},
                                   {5, "WAKE_OP"},
                                   {6, "LOCK_PI"},
                                   {7, "UNLOCK_PI"},
                                   {8, "TRYLOCK_PI"},
                                   {9, "WAIT_BITSET"},
                                   {10, "WAKE_BITSET"},
                                   {11, "WAIT_REQUEUE_PI"},
                                   {12, "CMP_REQUEUE_PI"},
                                   {13, "LOCK_PI2"}};
constexpr OperationRow kEpollCtl[] = {{1, "ADD"}, {2, "DEL"}, {3, "MOD"}};
constexpr OperationRow kFcntl[] = {
    {0, "F_DUPFD"},         {1, "F_GETFD"},         {2, "F_SETFD"},
    {3, "F_GETFL"},         {4, "F_SETFL"},         {5, "F_GETLK"},
    {6, "F_SETLK"},         {7, "F_SETLKW"},        {8, "F_SETOWN"},
    {9, "F_GETOWN"},        {10, "F_SETSIG"},       {11, "F_GETSIG"},
    {12, "F_GETLK64"},      {13, "F_SETLK64"},      {14, "F_SETLKW64"},
    {15, "F_SETOWN_EX"},    {16, "F_GETOWN_EX"},    {36, "F_OFD_GETLK"},
    {37, "F_OFD_SETLK"},    {38, "F_OFD_SETLKW"},   {1024, "F_SETLEASE"},
    {1025, "F_GETLEASE"},   {1026, "F_NOTIFY"},     {1030, "F_DUPFD_CLOEXEC"},
    {1031, "F_SETPIPE_SZ"}, {1032, "F_GETPIPE_SZ"}, {1033, "F_ADD_SEALS"},
    {1034, "F_GET_SEALS"}};
// Terminals, files, sockets: the same numbers on all three architectures.
constexpr OperationRow kIoctl[] = {{0x5401, "TCGETS"},
                                   {0x5402, "TCSETS"},
                                   {0x5403, "TCSETSW"},
                                   {0x5404, "TCSETSF"},
                                   {0x540b, "TCFLSH"},
                                   {0x540e, "TIOCSCTTY"},
                                   {0x540f, "TIOCGPGRP"},
                                   {0x5410, "TIOCSPGRP"},
                                   {0x5413, "TIOCGWINSZ"},
                                   {0x5414, "TIOCSWINSZ"},
                                   {0x541b, "FIONREAD"},
                                   {0x5421, "FIONBIO"},
                                   {0x5422, "TIOCNOTTY"},
                                   {0x5450, "FIONCLEX"},
                                   {0x5451, "FIOCLEX"},
                                   {0x5452, "FIOASYNC"},
                                   {0x80045430, "TIOCGPTN"},
                                   {0x40045431, "TIOCSPTLCK"},
                                   {0x8910, "SIOCGIFNAME"},
                                   {0x8912, "SIOCGIFCONF"},
                                   {0x8913, "SIOCGIFFLAGS"},
                                   {0x8915, "SIOCGIFADDR"},
                                   {0x8927, "SIOCGIFHWADDR"},
                                   {0x8933, "SIOCGIFINDEX"},
                                   {0x8946, "SIOCETHTOOL"},
                                   {0x40049409, "FICLONE"},
                                   {0xc020660b, "FS_IOC_FIEMAP"},
                                   {0x80086601, "FS_IOC_GETFLAGS"},
                                   {0x2400, "PERF_EVENT_IOC_ENABLE"},
                                   {0x2401, "PERF_EVENT_IOC_DISABLE"}};
constexpr OperationRow kPrctl[] = {{1, "SET_PDEATHSIG"},
                                   {3, "GET_DUMPABLE"},
                                   {4, "SET_DUMPABLE"},
                                   {8, "SET_KEEPCAPS"},
                                   {15, "SET_NAME"},
                                   {16, "GET_NAME"},
                                   {22, "SET_SECCOMP"},
                                   {23, "CAPBSET_READ"},
                                   {24, "CAPBSET_DROP"},
                                   {29, "SET_TIMERSLACK"},
                                   {35, "SET_MM"},
                                   {36, "SET_CHILD_SUBREAPER"},
                                   {38, "SET_NO_NEW_PRIVS"},
                                   {39, "GET_NO_NEW_PRIVS"},
                                   {41, "SET_THP_DISABLE"},
                                   {47, "CAP_AMBIENT"},
                                   {53, "GET_SPECULATION_CTRL"},
                                   {0x53564d41, "SET_VMA"}};
constexpr OperationRow kArchPrctl[] = {{0x1001, "SET_GS"},
                                       {0x1002, "SET_FS"},
                                       {0x1003, "GET_FS"},
                                       {0x1004, "GET_GS"},
                                       {0x3001, "CET_STATUS"}};
constexpr OperationRow kMadvise[] = {
    {0, "NORMAL"},    {1, "RANDOM"},         {2, "SEQUENTIAL"},      {3, "WILLNEED"},
    {4, "DONTNEED"},  {8, "FREE"},           {9, "REMOVE"},          {10, "DONTFORK"},
    {11, "DOFORK"},   {12, "MERGEABLE"},     {14, "HUGEPAGE"},       {15, "NOHUGEPAGE"},
    {16, "DONTDUMP"}, {17, "DODUMP"},        {18, "WIPEONFORK"},     {20, "COLD"},
    {21, "PAGEOUT"},  {22, "POPULATE_READ"}, {23, "POPULATE_WRITE"}, {25, "COLLAPSE"}};
constexpr OperationRow kFlock[] = {
    {1, "LOCK_SH"}, {2, "LOCK_EX"}, {5, "LOCK_SH|LOCK_NB"}, {6, "LOCK_EX|LOCK_NB"}, {8, "LOCK_UN"}};
constexpr OperationRow kBpf[] = {{0, "MAP_CREATE"},       {1, "MAP_LOOKUP_ELEM"},
                                 {2, "MAP_UPDATE_ELEM"},  {3, "MAP_DELETE_ELEM"},
                                 {4, "MAP_GET_NEXT_KEY"}, {5, "PROG_LOAD"}};
constexpr OperationRow kPtrace[] = {
    {0, "TRACEME"},        {1, "PEEKTEXT"},   {2, "PEEKDATA"},       {4, "POKETEXT"},
    {5, "POKEDATA"},       {7, "CONT"},       {9, "SINGLESTEP"},     {12, "GETREGS"},
    {16, "ATTACH"},        {17, "DETACH"},    {24, "SYSCALL"},       {0x4200, "SETOPTIONS"},
    {0x4204, "GETREGSET"}, {0x4206, "SEIZE"}, {0x4207, "INTERRUPT"}, {0x4208, "LISTEN"}};
constexpr OperationRow kMembarrier[] = {{0, "QUERY"},
                                        {1, "GLOBAL"},
                                        {2, "GLOBAL_EXPEDITED"},
                                        {8, "PRIVATE_EXPEDITED"},
                                        {16, "REGISTER_PRIVATE_EXPEDITED"}};
constexpr OperationRow kIpcControl[] = {{0, "IPC_RMID"}, {1, "IPC_SET"},  {2, "IPC_STAT"},
                                        {3, "IPC_INFO"}, {11, "GETPID"},  {12, "GETVAL"},
                                        {13, "GETALL"},  {14, "GETNCNT"}, {15, "GETZCNT"},
                                        {16, "SETVAL"},  {17, "SETALL"}};
constexpr OperationRow kIpc[] = {{1, "SEMOP"},   {2, "SEMGET"},  {3, "SEMCTL"},  {4, "SEMTIMEDOP"},
                                 {11, "MSGSND"}, {12, "MSGRCV"}, {13, "MSGGET"}, {14, "MSGCTL"},
                                 {21, "SHMAT"},  {22, "SHMDT"},  {23, "SHMGET"}, {24, "SHMCTL"}};
constexpr OperationRow kSocketcall[] = {
    {1, "SOCKET"},    {2, "BIND"},        {3, "CONNECT"},     {4, "LISTEN"},
    {5, "ACCEPT"},    {6, "GETSOCKNAME"}, {7, "GETPEERNAME"}, {8, "SOCKETPAIR"},
    {9, "SEND"},      {10, "RECV"},       {11, "SENDTO"},     {12, "RECVFROM"},
    {13, "SHUTDOWN"}, {14, "SETSOCKOPT"}, {15, "GETSOCKOPT"}, {16, "SENDMSG"},
    {17, "RECVMSG"},  {18, "ACCEPT4"},    {19, "RECVMMSG"},   {20, "SENDMMSG"}};

struct Operations {
  const OperationRow* begin = nullptr;
  const OperationRow* end = nullptr;
};

template <size_t kCount>
constexpr Operations All(const OperationRow (&rows)[kCount]) {
  return {rows, rows + kCount};
}

Operations OperationsOf(std::string_view call) {
  if (call == "futex" || call == "futex_time64") return All(kFutex);
  if (call == "fcntl" || call == "fcntl64") return All(kFcntl);
  if (call == "ioctl") return All(kIoctl);
  if (call == "epoll_ctl") return All(kEpollCtl);
  if (call == "prctl") return All(kPrctl);
  if (call == "arch_prctl") return All(kArchPrctl);
  if (call == "madvise") return All(kMadvise);
  if (call == "flock") return All(kFlock);
  if (call == "bpf") return All(kBpf);
  if (call == "ptrace") return All(kPtrace);
  if (call == "membarrier") return All(kMembarrier);
  if (call == "ipc") return All(kIpc);
  if (call == "socketcall") return All(kSocketcall);
  if (call == "semctl" || call == "shmctl" || call == "msgctl") return All(kIpcControl);
  return {};
}

const CallRow* RowOf(std::string_view call) {
  const CallRow* const row =
      std::lower_bound(std::begin(kCalls), std::end(kCalls), call,
                       [](const CallRow& each, std::string_view key) { return each.call < key; });
  return row != std::end(kCalls) && row->call == call ? row : nullptr;
}

std::optional<uint64_t> ParseNumber(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    base = 16;
  }
  // "0x5421 /* FIONBIO */", as -X verbose writes it.
  text = text.substr(0, text.find(' '));
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::optional<uint32_t> FindByName(const CallRow& row, std::string_view name) {
  if (name.starts_with(row.prefix)) name.remove_prefix(row.prefix.size());
  const Operations rows = OperationsOf(row.call);
  const OperationRow* const found = std::find_if(
      rows.begin, rows.end, [&](const OperationRow& each) { return each.name == name; });
  if (found == rows.end) return {};
  return found->value;
}

}  // namespace

std::optional<size_t> OperationArgument(std::string_view call) {
  const CallRow* const row = RowOf(call);
  if (row == nullptr) return {};
  return row->argument;
}

uint32_t OperationOf(std::string_view call, uint64_t argument) {
  const CallRow* const row = RowOf(call);
  return static_cast<uint32_t>(argument) & (row == nullptr ? kAllBits : row->mask);
}

std::string OperationName(std::string_view call, uint32_t operation) {
  const Operations rows = OperationsOf(call);
  const OperationRow* const found = std::find_if(
      rows.begin, rows.end, [&](const OperationRow& each) { return each.value == operation; });
  if (found != rows.end) return std::string(found->name);
  std::array<char, 16> digits = {};
  const auto [end, error] =
      std::to_chars(digits.data(), digits.data() + digits.size(), operation, 16);
  return "0x" + std::string(digits.data(), end);
}

std::optional<uint32_t> ParseOperation(std::string_view call, std::string_view text) {
  const CallRow* const row = RowOf(call);
  if (row == nullptr) return {};
  if (const auto number = ParseNumber(text)) return OperationOf(call, *number);
  if (const auto whole = FindByName(*row, text)) return whole;
  // strace names all that a number may mean: "SNDCTL_TMR_TIMEBASE or TCGETS".
  for (size_t at = text.find(" or "); at != std::string_view::npos; at = text.find(" or ")) {
    if (const auto one = FindByName(*row, text.substr(0, at))) return one;
    text.remove_prefix(at + 4);
  }
  text = text.substr(0, text.find('|'));
  if (const auto one = FindByName(*row, text)) return one;
  constexpr std::string_view kPrivate = "_PRIVATE";
  if (!text.ends_with(kPrivate)) return {};
  return FindByName(*row, text.substr(0, text.size() - kPrivate.size()));
}

}  // namespace culprit::trace
