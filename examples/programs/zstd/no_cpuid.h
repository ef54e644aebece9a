/* In place of the library's common/cpu.h: what the processor can do is not asked at run time, but decided at compile
 * time (-march). */
#define ZSTD_COMMON_CPU_H

typedef struct {
	int unknown;
} ZSTD_cpuid_t;

static inline ZSTD_cpuid_t ZSTD_cpuid(void)
{
	return (ZSTD_cpuid_t){ 0 };
}

static inline int ZSTD_cpuid_bmi1(ZSTD_cpuid_t cpu)
{
	return cpu.unknown;
}

static inline int ZSTD_cpuid_bmi2(ZSTD_cpuid_t cpu)
{
	return cpu.unknown;
}
