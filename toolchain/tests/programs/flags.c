/* Flags across the jump of a `switch`: gcc drops a comparison in a case that each way there has made already. */
#include "mix.h"

struct value { int type; double real; long number; };

__attribute__((noipa)) static unsigned long other(const struct value *a, const struct value *b, unsigned long sum)
{
    return mix(sum, (unsigned long)(a->type + b->type));
}
__attribute__((noipa)) static unsigned long another(const struct value *a, const struct value *b, unsigned long sum)
{
    return mix(sum, (unsigned long)(a->type * 3 + b->type));
}
double real(const struct value *v) { return v && v->type == 4 ? v->real : 0.0; }
long number(const struct value *v) { return v && v->type == 3 ? v->number : 0; }

/* The case 4 asks for the second type, which is the first one's, which was compared with 4 before the jump. */
NOINLINE static unsigned long equal(const struct value *a, const struct value *b, unsigned long sum)
{
    if (!a || !b)
        return 0;
    if (a->type != b->type)
        return 0;
    if (a == b)
        return 1;
    switch (a->type) {
    case 0:
        return other(a, b, sum);
    case 1:
        return another(a, b, sum);
    case 2:
        return other(b, a, sum + 1);
    case 3:
        return number(a) == number(b);
    case 4:
        return real(a) == real(b);
    default:
        return 0;
    }
}

/* The same with a frame and other ways to the case. */
NOINLINE static unsigned long walk(const unsigned char *code, unsigned long x, unsigned n)
{
    unsigned long stack[8] = { x };
    unsigned kind = 4;
    for (unsigned i = 0; i < n; i++) {
        unsigned next = code[i] & 7;
        if (next > 4 && x & 1)
            goto four;
        switch (next) {
        case 0: stack[i & 7] = mix(x, i); break;
        case 1: x += stack[(i + 1) & 7]; break;
        case 2: x ^= x >> 7; break;
        case 3: x = mix(x, stack[i & 7]); break;
        case 4:
        four:
            x = next == kind ? x + 3 : mix(x, 4);
            break;
        default: x--;
        }
        kind = 4 + (x & 1);
    }
    return mix(x, stack[3]);
}

/* By hand: each flag through the jump, also to a label that is run into and jumped to. */
unsigned long by_table(unsigned long way, unsigned long a, unsigned long b);
__asm__(".text\n.globl by_table\n.type by_table, @function\nby_table:\n\tendbr64\n"
        "\tmovl $100, %r8d\n\tpushq %rbx\n\tmovq %rdi, %rax\n\tcmpq %rdx, %rsi\n\tleaq .Lways(%rip), %r9\n\tjmp *(%r9,%rax,8)\n"
        "\t.section .data.rel.ro,\"aw\"\n\t.balign 8\n.Lways:\n\t.quad .Lway0, .Lway1, .Lway2, .Lway3\n\t.text\n"
        ".Lway0:\n\tendbr64\n\tleaq 1(%r8), %r8\n\tjb 1f\n\tleaq 2(%r8), %r8\n\tjmp .Lway2\n1:\tleaq 3(%r8), %r8\n"
        ".Lway1:\n\tendbr64\n\tmovq %rsp, %rcx\n\tleaq 64(%r8,%r8), %r8\n\tjs .Lway3\n\tleaq 4(%r8), %r8\n"
        ".Lway2:\n\tendbr64\n\tseto %cl\n\tsetb %bl\n\tsete %dl\n\tsetp %ah\n\tsets %dh\n"
        "\tmovzbl %cl, %ecx\n\tmovzbl %bl, %ebx\n\tleaq (%rbx,%rcx,2), %rcx\n\tmovzbl %dl, %ebx\n\tleaq (%rcx,%rbx,4), %rcx\n"
        "\tmovzbl %ah, %ebx\n\tleaq (%rcx,%rbx,8), %rcx\n\tmovzbl %dh, %ebx\n\taddq %rbx, %rbx\n\tleaq (%rcx,%rbx,8), %rcx\n"
        "\tleaq (%rax,%r8,8), %rax\n\tshlq $8, %rax\n\taddq %rcx, %rax\n\tpopq %rbx\n\tret\n"
        ".Lway3:\n\tendbr64\n\tcmc\n\tadcq %r8, %rax\n\tpopq %rbx\n\tret\n");

/* A register as the target, and a loop of stores in between. */
unsigned long by_register(unsigned long a, unsigned long b, void *to);
__asm__(".text\n.globl by_register\n.type by_register, @function\nby_register:\n\tendbr64\n"
        "\tmovq %rdi, %r8\n\tmovq %rdx, %rdi\n\tleaq .Llanding(%rip), %r9\n\tmovl $0x5a, %eax\n\tmovl $5, %ecx\n"
        "\tsubq %rsi, %r8\n\trep stosb\n\tmovq %r9, %rax\n\tjmp *%rax\n\tud2\n"
        ".Llanding:\n\tendbr64\n\tmovl $0, %eax\n\tsetl %al\n\tsbbq $0, %r8\n\tleaq (%r8,%rax,2), %rax\n\tret\n");

unsigned long run(unsigned long seed)
{
    static unsigned char bytes[64];
    unsigned long sum = seed;
    struct value a = { 0, 0, 0 }, b = a;
    for (int type = -1; type < 7; type++)
        for (int k = 0; k < 4; k++) {
            a.type = b.type = type;
            a.real = 1.5 * (k & 1), b.real = 1.5;
            a.number = k & 2, b.number = 2;
            sum = mix(sum, equal(&a, &b, sum) * 8 + equal(&a, &a, sum));
        }
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)((sum = mix(sum, i)) >> 9);
    sum = mix(sum, walk(bytes, sum, sizeof bytes));
    static const unsigned long values[] = { 0, 1, 2, 128, 0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff };
    for (unsigned i = 0; i < 7; i++)
        for (unsigned k = 0; k < 7; k++) {
            for (unsigned way = 0; way < 4; way++)
                sum = mix(sum, by_table(way, values[i], values[k]));
            sum = mix(sum, by_register(values[i], values[k], bytes + k) + bytes[k]);
        }
    return sum;
}
