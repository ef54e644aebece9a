/* filtered.c: puts filters before its own calls, and prints what these let it do. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static void filter(int number, unsigned verdict)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, verdict),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof code / sizeof code[0], code};
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		exit(2);
}

static void stopped(int signal, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	printf("stopped: %d %d %lld\n", signal, info->si_syscall, registers[REG_RDI]);
	registers[REG_RAX] = 77;
	syscall(SYS_getppid);
}

static int status_of(pid_t child)
{
	int status;
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int main(void)
{
	setvbuf(stdout, 0, _IONBF, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* Calls that whoever looks on might need are refused, too. */
	filter(SYS_process_vm_readv, SECCOMP_RET_KILL_PROCESS);
	filter(SYS_process_vm_writev, SECCOMP_RET_KILL_PROCESS);
	filter(SYS_gettid, SECCOMP_RET_ERRNO | EPERM);
	filter(SYS_mkdir, SECCOMP_RET_ERRNO | EACCES);
	filter(SYS_mkdirat, SECCOMP_RET_ERRNO | EACCES);
	printf("mkdir: %d", mkdir("/tmp/nonesuch", 0700));
	printf(" %d\n", errno);
	struct sigaction action = {.sa_sigaction = stopped, .sa_flags = SA_SIGINFO}, old;
	sigaction(SIGSYS, &action, 0);
	sigaction(SIGSYS, 0, &old);
	printf("handler: %d\n", old.sa_sigaction == stopped);
	filter(SYS_getpgid, SECCOMP_RET_TRAP);
	printf("answered: %ld\n", syscall(SYS_getpgid, 5));
	pid_t child = fork();
	if (child == 0) {
		execl("/bin/sh", "sh", "-c", "mkdir /tmp/nonesuch 2> /dev/null && exit 3; exit 4", (char *)0);
		_exit(5);
	}
	printf("child: %d\n", status_of(child));
	child = fork();
	if (child == 0) {
		signal(SIGSYS, SIG_DFL);
		syscall(SYS_getpgid, 5);
		_exit(6);
	}
	printf("without a handler: %d\n", status_of(child));
	filter(SYS_execve, SECCOMP_RET_ERRNO | EPERM);
	filter(SYS_clone, SECCOMP_RET_ERRNO | EAGAIN);
	execl("/bin/true", "true", (char *)0);
	printf("exec: %d\n", errno);
	printf("fork: %d", fork());
	printf(" %d\n", errno);
	return 0;
}
