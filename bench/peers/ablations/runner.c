/* A program's work as a process of its own, which does it once for each byte that it reads and
 * answers nanoseconds of the processor's time (other processes may run meanwhile) and the result.
 *
 * NATIVE is an ordinary program. Otherwise this is what code that was written for a window needs of
 * its host, for code that no verifier would accept: a window at address 0, without protection, in
 * the low 4 GiB of the process. Nothing but the ablations uses it. */
#ifdef NATIVE
#include <stdint.h>
#include <time.h>
#include <unistd.h>
extern unsigned long long work(void);

static unsigned long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

int main(void)
{
#else
#include <elf.h>
#include <stdint.h>
#include <time.h>

enum { STACK = 1 << 20, HEAP = 1 << 28, THREAD_BLOCK = 256 };
char stack[STACK] __attribute__((aligned(STACK)));
char own_stack[STACK] __attribute__((aligned(16))); /* code that is not rewritten has variables on it, and gives out their addresses */
char heap[HEAP] __attribute__((aligned(4096)));
uint64_t data_stack; /* the first r15 */
extern const Elf64_Ehdr __ehdr_start;
unsigned long long call_work(void);

/* The info page (the extension ABI, section 1), and the services that are always granted: there is
 * no system to call, no error to jump from, and nobody asks for a return address. */
__asm__(".section .postern_info,\"a\"\n"
	"	.globl info\n"
	"info:	.quad 0\n"
	"	.long 1, 0, heap, heap + 0x10000000\n"
	"	.quad 0\n"
	"	.long 0xfffff\n"
	"	.text\n"
	"	.globl sys, __postern_setjmp, __postern_exit, __postern_abort, __postern_longjmp, __postern_return\n"
	"sys:	mov $-38, %rax\n"
	"	ret\n"
	"__postern_setjmp:\n"
	"	xor %eax, %eax\n"
	"	ret\n"
	"__postern_exit: __postern_abort: __postern_longjmp: __postern_return:\n"
	"	ud2\n"
	"call_work:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	mov %rsp, %rax\n"
	"	mov $own_stack + 0x100000, %esp\n"
	"	push %rax\n	push %rax\n"
	"	mov data_stack, %r15\n"
	"	call work\n"
	"	pop %rsp\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbp\n	pop %rbx\n"
	"	ret\n"
	"	.globl _start\n"
	"_start:	and $-16, %rsp\n"
	"	call serve\n");

static long system_call(long number, long a, void *b, long c)
{
	__asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return number;
}

static unsigned long long now(void)
{
	struct timespec t;
	system_call(228, CLOCK_PROCESS_CPUTIME_ID, &t, 0);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

#define read(file, to, size) system_call(0, file, to, size)
#define write(file, from, size) system_call(1, file, from, size)
#define work() call_work()

void serve(void)
{
	uint64_t thread_pointer = (uint64_t)stack + STACK - THREAD_BLOCK;
	data_stack = thread_pointer;
	const Elf64_Phdr *header = (const void *)((const char *)&__ehdr_start + __ehdr_start.e_phoff);
	for (int k = 0; k < __ehdr_start.e_phnum; k++)
		if (header[k].p_type == PT_TLS) {
			data_stack -= (header[k].p_memsz + header[k].p_align - 1) & -header[k].p_align;
			for (uint64_t byte = 0; byte < header[k].p_filesz; byte++)
				((char *)data_stack)[byte] = ((const char *)header[k].p_vaddr)[byte];
		}
	data_stack &= -16ull;
#endif
	for (char turn; read(0, &turn, 1) == 1;) {
		unsigned long long answer[2], start = now();
		answer[1] = work();
		answer[0] = now() - start;
		write(1, answer, sizeof answer);
	}
#ifdef NATIVE
	return 0;
}
#else
	system_call(231, 0, 0, 0);
}
#endif
