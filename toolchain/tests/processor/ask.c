/* Every way in which programs ask what the processor can do. */
#include <cpuid.h>
#include <immintrin.h>

unsigned by_assembly(unsigned leaf, unsigned subleaf, unsigned word) {
    unsigned r[4];
    __asm__ volatile("cpuid" : "=a"(r[0]), "=b"(r[1]), "=c"(r[2]), "=d"(r[3]) : "a"(leaf), "c"(subleaf));
    return r[word & 3];
}

unsigned by_bytes(unsigned leaf, unsigned subleaf, unsigned word) {
    unsigned r[4];
    __asm__ volatile("xchgq %%rbx, %q1\n\t.byte 0x0f, 0xa2\n\txchgq %%rbx, %q1"
                     : "=a"(r[0]), "=&r"(r[1]), "=c"(r[2]), "=d"(r[3]) : "a"(leaf), "c"(subleaf));
    return r[word & 3];
}

unsigned by_header(unsigned leaf, unsigned subleaf, unsigned word) {
    unsigned r[4];
    __cpuid_count(leaf, subleaf, r[0], r[1], r[2], r[3]);
    return r[word & 3];
}

unsigned by_function(unsigned leaf, unsigned subleaf, unsigned word) {
    unsigned r[4] = {0};
    if (leaf == 0 || leaf == 0x80000000)
        r[0] = __get_cpuid_max(leaf, &r[1]);
    else if (!__get_cpuid_count(leaf, subleaf, &r[0], &r[1], &r[2], &r[3]))
        return 0;
    return r[word & 3];
}

unsigned long state_by_assembly(unsigned which) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(which));
    return low | (unsigned long)high << 32;
}

unsigned long state_by_bytes(unsigned which) {
    unsigned low, high;
    __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(which));
    return low | (unsigned long)high << 32;
}

__attribute__((target("xsave"))) unsigned long state_by_intrinsic(unsigned which) { return _xgetbv(which); }

/* Registers and flags are as the instruction leaves them. */
int kept(int a) {
    unsigned rax = 1, rbx, rcx = 0, rdx;
    unsigned char equal;
    long others = 0x1234;
    __asm__ volatile("movq $7, %%r10\n\tmovq $8, %%rsi\n\tpushq %%rsi\n\tcmpl $5, %[a]\n\tcpuid\n\tsete %[equal]\n\t"
                     "popq %%rdi\n\tleaq (%%r10, %%rsi), %[others]\n\taddq %%rdi, %[others]"
                     : "+a"(rax), "=b"(rbx), "+c"(rcx), "=d"(rdx), [equal] "=&r"(equal), [others] "+&r"(others)
                     : [a] "r"(a) : "r10", "rsi", "rdi", "memory");
    return others == 23 && rax == 0 ? equal : -1;
}

#define ASK(k, name) case k: return !!__builtin_cpu_supports(name);
int supports(int k) {
    __builtin_cpu_init();
    switch (k) {
        ASK(0, "sse2") ASK(1, "sse4.2") ASK(2, "avx2") ASK(3, "aes") ASK(4, "pclmul") ASK(5, "sha") ASK(6, "adx")
        ASK(7, "gfni") ASK(8, "vaes") ASK(9, "bmi2") ASK(10, "x86-64-v2") ASK(11, "x86-64-v3") ASK(12, "avx512f")
        ASK(13, "mmx") ASK(14, "osxsave") ASK(15, "lzcnt") ASK(16, "movbe") ASK(17, "vpclmulqdq") ASK(18, "f16c")
        ASK(19, "cmpxchg16b") ASK(20, "x86-64")
    }
    return -1;
}

int is_intel(void) { return !!__builtin_cpu_is("intel"); }
