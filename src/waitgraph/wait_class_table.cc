// SPDX-License-Identifier: Apache-2.0
//
// The data. Names of one meaning stand together, separated by spaces.
#include "waitgraph/wait_class_rows.h"

namespace culprit::waitgraph {
namespace {

using enum WaitClass;
using P = WaitPurpose;

constexpr Strength kSays = Strength::kExact;
constexpr Strength kHints = Strength::kBroad;
constexpr Strength kEntry = Strength::kSyscall;
constexpr Strength kSilent = Strength::kNone;

// clang-format off
// Functions of the Linux kernel, 4.x to 6.18, of x86-64 and arm64.
constexpr Group kKernelGroups[] = {
    // How every wait looks at its leaf.
    {kOther, P::kUnknown, kSilent, kPlumbing,
     "__schedule schedule __traceiter_sched_switch perf_trace_sched_switch "
     "schedule_preempt_disabled schedule_timeout schedule_hrtimeout "
     "schedule_hrtimeout_range schedule_hrtimeout_range_clock freezable_schedule "
     "freezable_schedule_timeout wait_woken wait_for_completion "
     "wait_for_completion_timeout wait_for_completion_killable wait_for_completion_state "
     "wait_for_completion_interruptible wait_for_completion_interruptible_timeout "
     "wait_for_common __wait_for_common bit_wait __wait_on_bit out_of_line_wait_on_bit "
     "__wait_on_bit_lock schedule_timeout_interruptible schedule_timeout_killable"},
    {kTimer, P::kTimer, kHints, kPlumbing,
     "schedule_timeout_idle schedule_timeout_uninterruptible"},
    // Locks. A futex may be a mutex or a condition: the caller tells.
    {kLock, P::kSync, kSays, 0,
     "futex_wait __futex_wait futex_do_wait futex_wait_queue futex_wait_queue_me "
     "futex_wait_multiple futex_wait_multiple_sleep futex_wait_requeue_pi"},
    {kLock, P::kWork, kSays, 0,
     "futex_lock_pi mutex_lock mutex_lock_killable mutex_lock_interruptible "
     "mutex_lock_io mutex_lock_nested __mutex_lock __mutex_lock_slowpath "
     "__mutex_lock_killable_slowpath __mutex_lock_interruptible_slowpath __ww_mutex_lock "
     "down_read down_read_killable down_read_interruptible down_write "
     "down_write_killable rwsem_down_read_slowpath rwsem_down_write_slowpath "
     "rwsem_down_read_failed rwsem_down_read_failed_killable rwsem_down_write_failed "
     "rwsem_down_write_failed_killable call_rwsem_down_read_failed "
     "call_rwsem_down_write_failed percpu_rwsem_wait __percpu_down_read "
     "percpu_down_write rt_mutex_lock rt_mutex_slowlock __rt_mutex_slowlock "
     "rt_mutex_slowlock_block rt_mutex_wait_proxy_lock rt_spin_lock_slowlock "
     "rtlock_slowlock_locked __rwbase_read_lock rwbase_write_lock __down ___down_common "
     "__down_common __down_interruptible __down_killable __down_timeout lock_sock_nested "
     "__lock_sock do_flock_lock flock_lock_inode_wait posix_lock_inode_wait "
     "locks_lock_inode_wait do_lock_file_wait __wait_on_freeing_inode d_alloc_parallel "
     "d_wait_lookup mmap_lock_wait __vma_enter_locked"},
    {kLock, P::kSync, kHints, 0,
     "do_futex"},
    {kLock, P::kWork, kHints, 0,
     "fcntl_setlk vma_start_write"},
    {kLock, P::kCondition, kSays, 0,
     "do_semtimedop __do_semtimedop"},
    // Block I/O, page cache, journals, writeback.
    {kDisk, P::kWork, kHints, 0,
     "io_schedule io_schedule_timeout blk_io_schedule bit_wait_io bit_wait_io_timeout "
     "wait_for_completion_io wait_for_completion_io_timeout submit_bio_wait bio_await "
     "blk_execute_rq blk_mq_get_tag blk_mq_get_request __blk_mq_alloc_requests "
     "blk_queue_enter blk_mq_freeze_queue_wait get_request rq_qos_wait wbt_wait "
     "folio_wait_bit_common folio_wait_bit folio_wait_bit_killable folio_wait_writeback "
     "folio_wait_stable __folio_lock __folio_lock_killable __folio_lock_or_retry "
     "wait_on_page_bit wait_on_page_bit_common wait_on_page_bit_killable "
     "wait_on_page_writeback wait_for_stable_page __lock_page __lock_page_killable "
     "put_and_wait_on_page_locked __wait_on_buffer __lock_buffer __bread_gfp "
     "start_this_handle add_transaction_credits do_get_write_access "
     "jbd2_journal_commit_transaction ext4_fc_commit ext4_sync_file ext4_issue_zeroout "
     "xlog_grant_head_check btrfs_commit_transaction btrfs_sync_log wait_on_extent_bit "
     "__writeback_single_inode"},
    {kDisk, P::kWork, kSays, 0,
     "blkdev_issue_flush filemap_read filemap_get_pages filemap_update_page "
     "generic_file_buffered_read filemap_fdatawait_range __filemap_fdatawait_range "
     "file_write_and_wait_range filemap_write_and_wait_range iomap_dio_rw __iomap_dio_rw "
     "__blockdev_direct_IO blkdev_direct_IO dio_await_one inode_dio_wait "
     "wait_transaction_locked jbd2_log_wait_commit jbd2_complete_transaction "
     "__jbd2_log_wait_for_space jbd2_journal_wait_updates jbd2_fc_wait_bufs xlog_wait "
     "xlog_wait_on_iclog xfs_log_force xfs_log_force_seq xfs_log_force_lsn "
     "__xfs_log_force_lsn xlog_grant_head_wait xlog_cil_force_seq xfs_buf_iowait "
     "wait_current_trans btrfs_wait_ordered_range f2fs_wait_on_page_writeback "
     "f2fs_issue_flush zil_commit txg_wait_open txg_wait_synced zio_wait "
     "balance_dirty_pages balance_dirty_pages_ratelimited "
     "balance_dirty_pages_ratelimited_flags wb_wait_for_completion wait_sb_inodes "
     "sync_inodes_sb wait_on_sync_kiocb virtblk_get_id"},
    {kLock, P::kWork, kSays, 0,
     "xfs_buf_lock"},
    {kDisk, P::kExternal, kSays, 0,
     "read_events"},
    {kNet, P::kWork, kSays, 0,
     "nfs_wait_on_request nfs_wait_bit_killable rpc_wait_bit_killable wait_for_response"},
    {kNet, P::kWork, kHints, 0,
     "__rpc_execute"},
    {kIpc, P::kWork, kSays, 0,
     "request_wait_answer __fuse_request_send __fuse_simple_request fuse_simple_request "
     "p9_client_rpc p9_virtio_request"},
    {kIpc, P::kExternal, kSays, 0,
     "fuse_dev_do_read"},
    {kIpc, P::kWork, kHints, 0,
     "virtio_fs_enqueue_req"},
    // Page faults and swap.
    {kFault, P::kStall, kSays, 0,
     "do_page_fault __do_page_fault exc_page_fault asm_exc_page_fault do_user_addr_fault "
     "do_translation_fault do_mem_abort handle_mm_fault __handle_mm_fault "
     "handle_pte_fault filemap_fault ext4_filemap_fault xfs_filemap_fault shmem_fault "
     "do_swap_page swapin_readahead swap_readpage swap_read_folio shmem_swapin_folio "
     "migration_entry_wait __migration_entry_wait migration_entry_wait_on_locked "
     "handle_userfault kvm_async_pf_task_wait_schedule kvm_async_pf_task_wait"},
    {kFault, P::kStall, kHints, 0,
     "gup_pgd_range"},
    // Reclaim and throttling.
    {kMemory, P::kStall, kSays, 0,
     "try_to_free_pages do_try_to_free_pages __alloc_pages_direct_reclaim "
     "__alloc_pages_slowpath __alloc_pages_direct_compact shrink_node "
     "shrink_inactive_list shrink_folio_list shrink_page_list reclaim_throttle "
     "throttle_direct_reclaim congestion_wait wait_iff_congested too_many_isolated "
     "mem_cgroup_handle_over_high __mem_cgroup_handle_over_high "
     "try_to_free_mem_cgroup_pages mem_cgroup_oom_synchronize mem_cgroup_out_of_memory "
     "blkcg_maybe_throttle_current throttle_cfs_rq_work throttle_cfs_rq"},
    {kMemory, P::kStall, kHints, 0,
     "try_charge_memcg lru_add_drain_all compact_zone"},
    {kDisk, P::kWork, kSays, 0,
     "blk_throtl_bio"},
    // Sockets.
    {kNet, P::kExternal, kSays, 0,
     "tcp_recvmsg tcp_recvmsg_locked tcp_splice_read tcp_data_wait inet_csk_accept "
     "inet_csk_wait_for_connect inet_accept udp_recvmsg udpv6_recvmsg __skb_recv_udp "
     "packet_recvmsg raw_recvmsg svc_recv svc_get_next_xprt"},
    {kNet, P::kExternal, kHints, 0,
     "sk_wait_data"},
    {kNet, P::kWork, kSays, 0,
     "sk_stream_wait_memory sk_stream_wait_connect sk_stream_wait_close "
     "inet_wait_for_connect __inet_stream_connect"},
    {kNet, P::kWork, kHints, 0,
     "sock_alloc_send_pskb sock_wait_for_wmem"},
    {kNet, P::kExternal, kHints, kAmbiguous,
     "__skb_wait_for_more_packets __skb_recv_datagram"},
    {kIpc, P::kExternal, kSays, 0,
     "unix_stream_recvmsg unix_stream_read_generic unix_stream_data_wait "
     "unix_dgram_recvmsg __unix_dgram_recvmsg unix_accept netlink_recvmsg "
     "vsock_connectible_recvmsg vsock_connectible_wait_data vsock_accept"},
    {kIpc, P::kWork, kSays, 0,
     "unix_stream_sendmsg unix_dgram_sendmsg unix_wait_for_peer unix_stream_connect"},
    // Pipes, terminals, events, message queues, binder, devices.
    {kIpc, P::kExternal, kSays, 0,
     "pipe_read anon_pipe_read pipe_wait_readable ipipe_prep wait_for_partner "
     "eventfd_read eventfd_ctx_do_read inotify_read fanotify_read n_tty_read do_syslog "
     "syslog_print devkmsg_read evdev_read do_msgrcv wq_sleep do_mq_timedreceive "
     "ring_buffer_wait"},
    {kIpc, P::kExternal, kHints, 0,
     "pipe_wait fifo_open tty_read perf_read"},
    {kIpc, P::kWork, kSays, 0,
     "pipe_write anon_pipe_write pipe_wait_writable opipe_prep n_tty_write "
     "tty_wait_until_sent do_msgsnd"},
    {kSignal, P::kExternal, kSays, 0,
     "signalfd_read signalfd_read_iter signalfd_dequeue"},
    {kTimer, P::kTimer, kSays, 0,
     "timerfd_read timerfd_read_iter drm_wait_vblank_ioctl"},
    {kIpc, P::kExternal, kSays, kSendsToo,
     "binder_wait_for_work binder_thread_read"},
    {kIpc, P::kExternal, kHints, kSendsToo,
     "binder_ioctl_write_read"},
    {kOther, P::kExternal, kSays, 0,
     "kvm_vcpu_block kvm_vcpu_halt"},
    {kOther, P::kTimer, kSays, 0,
     "snd_pcm_lib_write1 __snd_pcm_lib_xfer wait_for_avail"},
    {kOther, P::kWork, kSays, 0,
     "dma_fence_default_wait dma_fence_wait_timeout synchronize_rcu __wait_rcu_gp "
     "wait_rcu_gp synchronize_srcu __synchronize_srcu synchronize_rcu_expedited "
     "rcu_barrier stop_one_cpu affine_move_task coredump_wait"},
    {kOther, P::kExternal, kSays, kAmbiguous,
     "io_cqring_wait io_uring_get_work"},
    {kOther, P::kWork, kHints, 0,
     "flush_work __flush_work __flush_workqueue"},
    {kChild, P::kWork, kSays, 0,
     "call_usermodehelper_exec __request_module"},
    // The poll family.
    {kOther, P::kExternal, kSays, kAmbiguous,
     "ep_poll do_epoll_wait do_epoll_pwait do_sys_poll do_poll poll_schedule_timeout "
     "do_select core_sys_select do_pselect"},
    // Time, children, signals.
    {kTimer, P::kTimer, kSays, 0,
     "do_nanosleep hrtimer_nanosleep common_nsleep common_nsleep_timens "
     "alarm_timer_nsleep msleep msleep_interruptible usleep_range usleep_range_state"},
    {kChild, P::kWork, kSays, 0,
     "do_wait __do_wait kernel_wait4 wait_for_vfork_done de_thread zap_pid_ns_processes"},
    {kChild, P::kWork, kHints, 0,
     "kernel_clone"},
    {kSignal, P::kExternal, kSays, 0,
     "sigsuspend do_sigtimedwait"},
    {kSignal, P::kStall, kSays, 0,
     "do_signal_stop ptrace_stop do_freezer_trap __refrigerator"},
    // Where kernel threads wait for work, when it is not their own function.
    {kOther, P::kExternal, kSays, 0,
     "irq_wait_for_interrupt kswapd_try_to_sleep khugepaged_wait_work"},
    {kTimer, P::kWork, kSays, 0,
     "rcu_gp_fqs_loop"},
    {kOther, P::kWork, kSays, 0,
     "rcu_nocb_wait_gp"},
    {kOther, P::kExternal, kHints, 0,
     "nocb_gp_wait nocb_cb_wait io_wq_worker io_sq_thread vhost_task_fn vhost_worker"},
    {kTimer, P::kTimer, kSays, 0,
     "kdamond_usleep"},
};

// Functions of libraries and run times, by distinctive names: any module.
constexpr Group kNamedGroups[] = {
    {kLock, P::kWork, kHints, 0,
     "pthread_mutex_lock __pthread_mutex_lock ___pthread_mutex_lock "
     "__pthread_mutex_lock_full __pthread_mutex_cond_lock pthread_mutex_timedlock "
     "__pthread_mutex_clocklock lll_lock_wait __lll_lock_wait __GI___lll_lock_wait "
     "__lll_lock_wait_private pthread_rwlock_rdlock pthread_rwlock_wrlock "
     "__pthread_rwlock_rdlock __pthread_rwlock_wrlock ___pthread_rwlock_rdlock "
     "___pthread_rwlock_wrlock pthread_barrier_wait __pthread_barrier_wait "
     "NonPI::MutexLockWithTimeout"},
    {kChild, P::kWork, kHints, 0,
     "pthread_join __pthread_join __pthread_clockjoin_ex ___pthread_join "
     "std::thread::join"},
    {kLock, P::kCondition, kHints, 0,
     "pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait "
     "__pthread_cond_wait ___pthread_cond_wait __pthread_cond_timedwait "
     "___pthread_cond_timedwait ___pthread_cond_clockwait __pthread_cond_wait_common "
     "__pthread_cond_timedwait_relative sem_wait sem_timedwait sem_clockwait "
     "__new_sem_wait __new_sem_wait_slow __new_sem_wait_slow64 do_futex_wait "
     "std::condition_variable::wait std::__1::condition_variable::wait std::thread::park "
     "std::thread::park_timeout"},
    // The JVM's monitors and Unsafe.park stand on condition variables of their own.
    {kLock, P::kSync, kHints, 0,
     "Unsafe_Park"},
    {kLock, P::kWork, kHints, 0,
     "ObjectMonitor::enter ObjectMonitor::EnterI Monitor::lock Mutex::lock "
     "art::Monitor::Lock art::Mutex::ExclusiveLock runtime.lock2 take_gil"},
    {kLock, P::kCondition, kHints, 0,
     "ObjectMonitor::wait Monitor::wait art::Monitor::Wait "
     "art::ConditionVariable::WaitHoldingLocks art::ConditionVariable::TimedWait "
     "runtime.notesleep runtime.notetsleep_internal g_cond_wait g_cond_wait_until "
     "uv_cond_wait"},
    // macOS.
    {kLock, P::kCondition, kSays, 0,
     "__psynch_cvwait semaphore_wait_trap"},
    {kLock, P::kWork, kSays, 0,
     "__psynch_mutexwait __psynch_rw_rdlock __psynch_rw_wrlock"},
    {kLock, P::kSync, kSays, 0,
     "__ulock_wait"},
    {kOther, P::kExternal, kSays, 0,
     "__workq_kernreturn"},
    {kIpc, P::kExternal, kSays, kSendsToo,
     "mach_msg_trap mach_msg2_trap"},
    {kOther, P::kExternal, kSays, kAmbiguous,
     "kevent"},
    {kTimer, P::kTimer, kSays, 0,
     "__semwait_signal"},
    // Windows, user mode.
    {kLock, P::kWork, kSays, 0,
     "RtlEnterCriticalSection RtlpEnterCriticalSectionContended "
     "RtlpWaitOnCriticalSection RtlAcquireSRWLockExclusive RtlAcquireSRWLockShared"},
    {kLock, P::kCondition, kSays, 0,
     "RtlSleepConditionVariableCS RtlSleepConditionVariableSRW SleepConditionVariableSRW "
     "SleepConditionVariableCS"},
    {kLock, P::kSync, kHints, 0,
     "RtlWaitOnAddress NtWaitForAlertByThreadId NtWaitForKeyedEvent "
     "NtWaitForSingleObject ZwWaitForSingleObject WaitForSingleObject "
     "WaitForSingleObjectEx"},
    {kOther, P::kExternal, kHints, kAmbiguous,
     "NtWaitForMultipleObjects ZwWaitForMultipleObjects WaitForMultipleObjects "
     "WaitForMultipleObjectsEx NtRemoveIoCompletion NtRemoveIoCompletionEx "
     "ZwRemoveIoCompletion GetQueuedCompletionStatus"},
    {kOther, P::kExternal, kSays, kAmbiguous,
     "MsgWaitForMultipleObjectsEx NtUserMsgWaitForMultipleObjectsEx "
     "NtWaitForWorkViaWorkerFactory ZwWaitForWorkViaWorkerFactory"},
    {kIpc, P::kExternal, kSays, 0,
     "NtUserGetMessage NtUserWaitMessage"},
    {kIpc, P::kExternal, kHints, 0,
     "GetMessage GetMessageW NtReplyWaitReceivePort"},
    {kIpc, P::kExternal, kHints, kSendsToo,
     "NtAlpcSendWaitReceivePort ZwAlpcSendWaitReceivePort"},
    {kTimer, P::kTimer, kHints, 0,
     "NtDelayExecution ZwDelayExecution SleepEx"},
    {kDisk, P::kUnknown, kEntry, kAmbiguous,
     "NtReadFile"},
    {kDisk, P::kWork, kEntry, 0,
     "NtWriteFile NtFlushBuffersFile NtCreateFile"},
    // Windows, kernel.
    {kOther, P::kUnknown, kSilent, kPlumbing,
     "SwapContext SwapContext_XRstor KiSwapContext KiSwapThread KiCommitThreadWait"},
    {kLock, P::kSync, kEntry, 0,
     "KeWaitForSingleObject"},
    {kOther, P::kExternal, kEntry, kAmbiguous,
     "KeWaitForMultipleObjects"},
    {kLock, P::kWork, kHints, 0,
     "KeWaitForGate"},
    {kTimer, P::kTimer, kSays, 0,
     "KeDelayExecutionThread"},
    {kOther, P::kExternal, kSays, kAmbiguous,
     "KeRemoveQueueEx KeRemoveQueue"},
    {kOther, P::kExternal, kHints, kAmbiguous,
     "IoRemoveIoCompletion"},
    {kIpc, P::kExternal, kHints, 0,
     "AlpcpReceiveMessage"},
    {kIpc, P::kExternal, kHints, kSendsToo,
     "AlpcpSignalAndWait"},
    {kLock, P::kWork, kSays, 0,
     "ExAcquireResourceExclusiveLite ExAcquireResourceSharedLite ExpWaitForResource "
     "ExAcquireFastMutex ExfAcquirePushLockExclusive ExfAcquirePushLockShared "
     "ExpAcquireFastMutexContended KeAcquireGuardedMutex "
     "ExWaitForRundownProtectionRelease"},
    {kFault, P::kStall, kSays, 0,
     "MmAccessFault MiIssueHardFault MiWaitForInPageComplete MiDispatchFault KiPageFault"},
    {kDisk, P::kWork, kHints, 0,
     "IopSynchronousServiceTail"},
    {kDisk, P::kWork, kSays, 0,
     "IoSynchronousPageWrite NtfsWaitSync CcWaitForCurrentLazyWriterActivity"},
};

// Functions of the simulated machines (culprit synth) that no real system has.
constexpr Group kSimulatedGroups[] = {
    {kOther, P::kUnknown, kSilent, kPlumbing,
     "SwitchThread"},
    {kLock, P::kWork, kSays, 0,
     "AcquireLock AcquireResourceShared AcquireMDU"},
    {kFault, P::kStall, kSays, 0,
     "PageFault WaitForPage"},
    {kDisk, P::kWork, kHints, 0,
     "StartIo folio_wait_bit"},
    {kDisk, P::kWork, kSays, 0,
     "HoldUntilSettled ReadDirect"},
    {kIpc, P::kExternal, kSays, kSendsToo,
     "AlpcReceive"},
    {kIpc, P::kExternal, kSays, 0,
     "RemoveQueue"},
    {kIpc, P::kExternal, kSays, kAmbiguous,
     "WaitForInput"},
    {kIpc, P::kWork, kSays, 0,
     "WaitForWorkItem"},
    {kTimer, P::kTimer, kSays, 0,
     "DelayThread DelayExecution"},
};

// What code does that ends somebody's wait. The name nearest to the leaf counts.
constexpr WakeGroup kWakeGroups[] = {
    {kNet,
     "tcp_sendmsg tcp_sendmsg_locked tcp_v4_rcv tcp_v6_rcv tcp_rcv_established "
     "tcp_v4_do_rcv tcp_child_process tcp_data_ready udp_sendmsg udpv6_sendmsg "
     "udp_queue_rcv_skb __udp4_lib_rcv net_rx_action __napi_poll process_backlog"},
    {kIpc,
     "unix_stream_sendmsg unix_dgram_sendmsg unix_stream_connect unix_release_sock "
     "unix_write_space netlink_sendmsg netlink_broadcast pipe_write anon_pipe_write "
     "pipe_read anon_pipe_read pipe_release eventfd_write eventfd_signal "
     "eventfd_signal_mask n_tty_receive_buf_common flush_to_ldisc tty_wakeup "
     "tty_port_default_receive_buf binder_transaction binder_proc_transaction "
     "binder_thread_write binder_wakeup_thread_ilocked fuse_dev_do_write "
     "fuse_request_end fsnotify evdev_events perf_output_wakeup perf_event_wakeup"},
    {kSignal,
     "send_signal_locked __send_signal_locked send_signal __send_signal do_send_sig_info "
     "complete_signal signal_wake_up_state do_notify_parent do_notify_parent_cldstop"},
    {kLock,
     "futex_wake futex_wake_op futex_requeue mutex_unlock up_read up_write rwsem_wake"},
    {kTimer,
     "hrtimer_wakeup process_timeout timerfd_tmrproc timerfd_triggered it_real_fn "
     "posix_timer_fn"},
    {kDisk,
     "bio_endio blk_mq_end_request blk_mq_complete_request folio_end_writeback "
     "end_page_writeback aio_complete"},
    {kChild,
     "wait_task_zombie"},
    // System calls and library functions, where there are no kernel frames.
    {kIpc,
     "NtSetIoCompletion NtAlpcSendWaitReceivePort"},
    {kLock,
     "NtReleaseKeyedEvent pthread_cond_signal pthread_cond_broadcast sem_post"},
    {kLock,
     "RtlLeaveCriticalSection pthread_mutex_unlock __pthread_mutex_unlock "
     "___pthread_mutex_unlock __GI___pthread_mutex_unlock __pthread_mutex_unlock_usercnt "
     "lll_mutex_unlock_optimized __lll_lock_wake __lll_lock_wake_private "
     "pthread_rwlock_unlock __pthread_rwlock_unlock ___pthread_rwlock_unlock",
     true},
    // Simulated machines.
    {kIpc,
     "AlpcSend InsertQueue QueueInput"},
    {kLock,
     "ReleaseLock ReleaseResource"},
    {kTimer,
     "ExpireTimers"},
    {kDisk,
     "CompleteRequest"},
};
// clang-format on

// System calls that can block, with their numbers; -1: not on that machine.
constexpr SyscallRow kSyscallRows[] = {
    {"futex", 202, 98, kLock, P::kSync, 0, kLock},
    {"futex_wait", 455, 455, kLock, P::kSync},
    {"futex_waitv", 449, 449, kLock, P::kSync},
    {"epoll_wait", 232, -1, kOther, P::kExternal, kAmbiguous},
    {"epoll_pwait", 281, 22, kOther, P::kExternal, kAmbiguous},
    {"epoll_pwait2", 441, 441, kOther, P::kExternal, kAmbiguous},
    {"poll", 7, -1, kOther, P::kExternal, kAmbiguous},
    {"ppoll", 271, 73, kOther, P::kExternal, kAmbiguous},
    {"select", 23, -1, kOther, P::kExternal, kAmbiguous},
    {"pselect6", 270, 72, kOther, P::kExternal, kAmbiguous},
    {"io_uring_enter", 426, 426, kOther, P::kExternal, kAmbiguous},
    {"io_getevents", 208, 4, kDisk, P::kExternal},
    {"io_pgetevents", 333, 292, kDisk, P::kExternal},
    {"accept", 43, 202, kNet, P::kExternal, kAmbiguous},
    {"accept4", 288, 242, kNet, P::kExternal, kAmbiguous},
    {"recvfrom", 45, 207, kNet, P::kExternal, kAmbiguous},
    {"recvmsg", 47, 212, kNet, P::kExternal, kAmbiguous},
    {"recvmmsg", 299, 243, kNet, P::kExternal, kAmbiguous},
    {"connect", 42, 203, kNet, P::kWork, kAmbiguous},
    {"sendto", 44, 206, kNet, P::kWork, kAmbiguous, kNet},
    {"sendmsg", 46, 211, kNet, P::kWork, kAmbiguous, kNet},
    {"sendmmsg", 307, 269, kNet, P::kWork, kAmbiguous, kNet},
    {"sendfile", 40, 71, kNet, P::kWork, kAmbiguous, kNet},
    {"splice", 275, 76, kOther, P::kUnknown, kAmbiguous, kIpc},
    {"read", 0, 63, kOther, P::kUnknown, kAmbiguous},
    {"readv", 19, 65, kOther, P::kUnknown, kAmbiguous},
    {"write", 1, 64, kOther, P::kWork, kAmbiguous, kIpc},
    {"writev", 20, 66, kOther, P::kWork, kAmbiguous, kIpc},
    {"pread64", 17, 67, kDisk, P::kWork},
    {"preadv", 295, 69, kDisk, P::kWork},
    {"preadv2", 327, 286, kDisk, P::kWork},
    {"pwrite64", 18, 68, kDisk, P::kWork},
    {"pwritev", 296, 70, kDisk, P::kWork},
    {"pwritev2", 328, 287, kDisk, P::kWork},
    {"fsync", 74, 82, kDisk, P::kWork},
    {"fdatasync", 75, 83, kDisk, P::kWork},
    {"sync", 162, 81, kDisk, P::kWork},
    {"syncfs", 306, 267, kDisk, P::kWork},
    {"sync_file_range", 277, 84, kDisk, P::kWork},
    {"msync", 26, 227, kDisk, P::kWork},
    {"open", 2, -1, kDisk, P::kWork},
    {"openat", 257, 56, kDisk, P::kWork},
    {"openat2", 437, 437, kDisk, P::kWork},
    {"close", 3, 57, kDisk, P::kWork, 0, kIpc},
    {"getdents64", 217, 61, kDisk, P::kWork},
    {"unlink", 87, -1, kDisk, P::kWork},
    {"unlinkat", 263, 35, kDisk, P::kWork},
    {"rename", 82, -1, kDisk, P::kWork},
    {"renameat", 264, 38, kDisk, P::kWork},
    {"renameat2", 316, 276, kDisk, P::kWork},
    {"stat", 4, -1, kDisk, P::kWork},
    {"newfstatat", 262, 79, kDisk, P::kWork},
    {"statx", 332, 291, kDisk, P::kWork},
    {"ftruncate", 77, 46, kDisk, P::kWork},
    {"fallocate", 285, 47, kDisk, P::kWork},
    {"execve", 59, 221, kDisk, P::kWork},
    {"flock", 73, 32, kLock, P::kWork},
    {"fcntl", 72, 25, kLock, P::kWork},
    {"semop", 65, 193, kLock, P::kCondition},
    {"semtimedop", 220, 192, kLock, P::kCondition},
    {"msgrcv", 70, 188, kIpc, P::kExternal},
    {"msgsnd", 69, 189, kIpc, P::kWork, 0, kIpc},
    {"mq_timedreceive", 243, 183, kIpc, P::kExternal},
    {"mq_timedsend", 242, 182, kIpc, P::kWork, 0, kIpc},
    {"nanosleep", 35, 101, kTimer, P::kTimer},
    {"clock_nanosleep", 230, 115, kTimer, P::kTimer},
    {"wait4", 61, 260, kChild, P::kWork},
    {"waitid", 247, 95, kChild, P::kWork},
    {"vfork", 58, -1, kChild, P::kWork},
    {"clone", 56, 220, kChild, P::kWork},
    {"pause", 34, -1, kSignal, P::kExternal},
    {"rt_sigsuspend", 130, 133, kSignal, P::kExternal},
    {"rt_sigtimedwait", 128, 137, kSignal, P::kExternal},
    {"kill", 62, 129, kOther, P::kUnknown, 0, kSignal},
    {"tgkill", 234, 131, kOther, P::kUnknown, 0, kSignal},
    {"exit_group", 231, 94, kOther, P::kWork},
    {"munmap", 11, 215, kLock, P::kWork},
    {"mmap", 9, 222, kLock, P::kWork},
    {"mprotect", 10, 226, kLock, P::kWork},
    {"madvise", 28, 233, kLock, P::kWork},
    {"ioctl", 16, 29, kOther, P::kUnknown, kAmbiguous},
};

// Names of libraries for system calls of another name.
constexpr SyscallAlias kAliases[] = {
    {"recv", "recvfrom"},
    {"send", "sendto"},
    {"pselect", "pselect6"},
    {"sigsuspend", "rt_sigsuspend"},
    {"sigwait", "rt_sigtimedwait"},
    {"sigwaitinfo", "rt_sigtimedwait"},
    {"sigtimedwait", "rt_sigtimedwait"},
    {"usleep", "nanosleep"},
    {"sleep", "nanosleep"},
    {"wait", "wait4"},
    {"waitpid", "wait4"},
    {"pread", "pread64"},
    {"pwrite", "pwrite64"},
    {"getdents", "getdents64"},
    {"select_nocancel", "select"},
    {"open64", "open"},
    {"poll_nocancel", "poll"},
    {"epoll_wait_nocancel", "epoll_wait"},
};

}  // namespace

std::span<const Group> KernelGroups() { return kKernelGroups; }
std::span<const Group> NamedGroups() { return kNamedGroups; }
std::span<const Group> SimulatedGroups() { return kSimulatedGroups; }
std::span<const WakeGroup> WakeGroups() { return kWakeGroups; }
std::span<const SyscallRow> SyscallRows() { return kSyscallRows; }
std::span<const SyscallAlias> SyscallAliases() { return kAliases; }

}  // namespace culprit::waitgraph
