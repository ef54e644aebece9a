typedef __builtin_va_list va_list;
#define va_start(list, last) __builtin_va_start(list, last)
#define va_arg(list, type) __builtin_va_arg(list, type)
#define va_end(list) __builtin_va_end(list)
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define CAT(a, b) a ## b
#define XCAT(a, b) CAT(a, b)
#define STRING(x) #x
#define XSTRING(x) STRING(x)
#define COUNT(...) count_of(sizeof (long[]){ __VA_ARGS__ }, ## __VA_ARGS__)
#define f(x) f(x + 1)
#define TEN 10
#if defined(NOTHING) || MAX(3, 4) != 4 || TEN / 3 != 3 || (-1 > 0u) != 1 || '\377' >= 0
#error the condition is wrong
#elif !defined TEN
#error so is this one
#else
static long count_of(unsigned long bytes, ...) { return bytes / sizeof(long); }
long f0(long p) { return MAX(p, 7) + XCAT(TEN, 5) + sizeof XSTRING(MAX("a\n", TEN)) + COUNT(1, 2, p); }
#endif
struct bits { unsigned a : 3; int b : 5; unsigned long c : 40; _Bool d : 1; };
long f1(long p) { struct bits x = { p, -3, p, p }; x.a++; x.b -= p; x.c *= 3; return x.a + x.b * 10 + (unsigned long)x.c * 100 + x.d + sizeof x; }
#pragma pack(push, 1)
struct packed { char c; int i; long l : 33; short s; };
#pragma pack(pop)
long f2(long p) { struct packed x = { 1, p, p, 3 }; x.l += 5; x.i ^= x.l; return x.i + (long)x.l + x.s + sizeof x + __builtin_offsetof(struct packed, s); }
static long sum(int n, ...)
{
	va_list l, m;
	long s = 0;
	va_start(l, n);
	__builtin_va_copy(m, l);
	for (int i = 0; i < n; i++) { s += va_arg(l, long); s += va_arg(l, double) * 2; s += va_arg(l, int); }
	va_end(l);
	s += va_arg(m, long);
	va_end(m);
	return s;
}
long f3(long p) { return sum(5, p, 1.5, 2, p, 2.5, 3, p, 3.5, 4, p, 4.5, 5, p, 5.5, 6); }
long f4(long p)
{
	int n = (p & 15) + 3;
	int a[n];
	long s = 0;
	for (int i = 0; i < n; i++)
		a[i] = i * p;
	for (int i = 0; i < n; i++) {
		char t[i + 1];
		t[i] = i;
		if (i == 5)
			continue;
		s += a[i] + t[i] + sizeof t + sum(1, 1l, 2.0, t[i]);
	}
	return s + sizeof a;
}
long f5(long p)
{
	static void *table[] = { &&a, &&b, &&c };
	long s = 0;
	int i = 0;
	goto *table[p & 1];
a:	s += 1;
b:	s += 10;
	if (++i < 3)
		goto *table[i];
c:	return s;
}
long f6(long p)
{
	return __builtin_popcountl(p) + __builtin_clz((int)p | 1) + __builtin_ctzl(p | 16) + __builtin_ffs(p) + (long)__builtin_bswap32(p) +
		__builtin_bswap16(p) + (long)__builtin_bswap64(p) + __builtin_parity(p) + __builtin_clrsbl(p) + __builtin_abs((int)p);
}
long f7(long p)
{
	int r;
	long q, s = __builtin_add_overflow((int)p, 2147483647, &r);
	unsigned u;
	unsigned char c;
	s = s * 2 + __builtin_mul_overflow(p, p, &q);
	s = s * 2 + __builtin_sub_overflow(3, p, &u);
	s = s * 2 + __builtin_mul_overflow((unsigned long)p, 2ul, &q);
	s = s * 2 + __builtin_add_overflow(p, -1ul, &q);
	s = s * 2 + __builtin_add_overflow(p, 200, &c);
	s = s * 2 + __builtin_sub_overflow_p(p, 5l, (short)0);
	s = s * 2 + __builtin_smull_overflow(p, 1l << 62, &q);
	return s * 1000 + r + q + u + c;
}
long f8(long p) { return ({ long y = p * 2; if (y > 3) y = 3; y; }) + ({ int z = 4; z * z; }) + (p ?: 9); }
long f9(long p)
{
	char *q = __builtin_alloca((p & 31) + 1), *r = __builtin_alloca(40);
	int w[] = L"wide";
	q[p & 31] = 9;
	r[39] = q[p & 31];
	return r[39] + L"ab"[1] + sizeof u8"x" + U'\u00e9' + w[3] + sizeof w + u"\U0001F600"[1] + sizeof __func__ + __func__[1];
}
static int parameters(int n, int a[n], int b[static 2]) { return a[n - 1] + b[1]; }
long f10(long p) { int a<:3:> = <%1, 2, p%>; return parameters(3, a, a) + 0x1.8p3 + __builtin_expect(p == 3, 0) + __builtin_types_compatible_p(int, signed); }
struct __attribute__((aligned(16))) wide { char c; };
typedef int small __attribute__((mode(QI)));
long f11(long p)
{
	struct wide w[2] = { { p }, { 3 } };
	__extension__ __typeof__(w[0].c) c = w[0].c;
	static const unsigned char text[] __attribute__((unused)) = "abc";
	char room __attribute__((aligned(8))) = p;
	_Alignas(16) char other = p;
	switch (c) { case 0 ... 3: c = 7; __attribute__((fallthrough)); default: c++; }
	__asm__ volatile("" : "+r"(c) : : "memory");
	return c + sizeof w + (small)p + sizeof(small) + ((long)&room & 7) + ((long)&other & 15) + text[1];
}
struct open { int n; short rest[]; };
long f12(long p)
{
	long room[4] = { 0 };
	struct open *o = (struct open *)room;
	_Static_assert(sizeof(struct open) == 4, "the " "size");
	o->rest[3] = p;
	return o->rest[3] + sizeof *o;
}
