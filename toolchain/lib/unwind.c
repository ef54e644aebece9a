/* The unwinder: what the C++ run-time library asks of its platform (the Itanium C++ ABI, level I).
 *
 * Tables describe frames as on any x86-64 system, with the data stack in place of the stack: at a
 * call the data stack pointer is what the compiler takes %rsp for. Return addresses are not there.
 * They come from the service __postern_return, one for each depth of the control stack, and
 * __postern_longjmp moves the control stack pointer to the frame of a landing pad.
 *
 * Invariant: a context describes a frame at one of its calls; `depth` is what the control stack has
 * while that frame runs. */
#include <postern/extension.h>
#include <stddef.h>
#include <stdint.h>
#include <unwind.h>

long __postern_return(unsigned depth);

/* Registers as DWARF counts them, and the words of unwind.s. */
enum { RAX, RDX, RBX = 3, RBP = 6, RSP = 7, R12 = 12, R13, R14, REGISTERS = 17 };

struct frame {
    uint64_t rbx, rbp, r12, r13, r14, stack;
    uint32_t at, depth;
    uint64_t rax, rdx;
};

_Noreturn void __postern_land(struct frame *frame);

struct _Unwind_Context {
    uint64_t reg[REGISTERS];
    uint32_t at, depth;
    /* What the tables say of the function. */
    const uint8_t *program, *program_end, *initial, *initial_end, *lsda;
    uint32_t function, code_align;
    int32_t data_align;
    _Unwind_Personality_Fn personality;
    uint32_t arguments;
};

/* Made by the linker where there are tables. */
extern const uint8_t __postern_frame_index[] __attribute__((weak, visibility("hidden")));

static uint64_t unsigned_leb(const uint8_t **p)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = *(*p)++;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    return value;
}

static int64_t signed_leb(const uint8_t **p)
{
    int64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = *(*p)++;
        if (shift < 64)
            value |= (int64_t)((uint64_t)(byte & 0x7f) << shift);
        shift += 7;
    } while (byte & 0x80);
    if (shift < 64 && byte & 0x40)
        value |= -((int64_t)1 << shift);
    return value;
}

static uint32_t word(const uint8_t *p)
{
    uint32_t value;
    __builtin_memcpy(&value, p, sizeof value);
    return value;
}

static uint64_t quad(uint64_t offset)
{
    uint64_t value;
    __builtin_memcpy(&value, (const void *)(uintptr_t)(uint32_t)offset, sizeof value);
    return value;
}

/* A pointer in one of the encodings that the assembler uses in frame tables: 4 or 8 bytes, absolute
 * or relative to itself. */
static uint32_t pointer(const uint8_t **p, uint8_t encoding)
{
    uint32_t here = (uint32_t)(uintptr_t)*p;
    uint32_t value = word(*p);
    *p += (encoding & 0x0f) == 0 || (encoding & 0x07) == 4 ? 8 : 4;
    if (!value)
        return 0;
    if ((encoding & 0x70) == 0x10)
        value += here;
    if (encoding & 0x80)
        value = (uint32_t)quad(value);
    return value;
}

/* Reads the tables for the function around `at` - 1. False if there are none. */
static int describe(struct _Unwind_Context *c)
{
    const uint8_t *index = __postern_frame_index;
    /* A sorted table of pairs, each relative to the index: where a function begins, where its
     * description is. */
    if (!index || index[0] != 1 || index[3] != 0x3b)
        return 0;
    const uint8_t *p = index + 4;
    pointer(&p, index[1]);
    uint32_t low = 0, high = word(p), base = (uint32_t)(uintptr_t)index, wanted = c->at - 1;
    const uint8_t *table = p + 4;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (word(table + 8 * middle) + base <= wanted)
            low = middle;
        else
            high = middle;
    }
    if (high == 0)
        return 0;
    const uint8_t *fde = index + (int32_t)word(table + 8 * low + 4);
    const uint8_t *end = fde + 4 + word(fde);
    const uint8_t *cie = fde + 4 - word(fde + 4);

    const uint8_t *cie_end = cie + 4 + word(cie);
    const char *letter = (const char *)cie + 9;
    p = cie + 9 + __builtin_strlen(letter) + 1;
    c->code_align = (uint32_t)unsigned_leb(&p);
    c->data_align = (int32_t)signed_leb(&p);
    unsigned_leb(&p);
    uint8_t encoding = 0, lsda_encoding = 0xff;
    c->personality = 0;
    if (*letter++ == 'z')
        unsigned_leb(&p);
    for (; *letter; letter++) {
        if (*letter == 'R')
            encoding = *p++;
        else if (*letter == 'L')
            lsda_encoding = *p++;
        else if (*letter == 'P') {
            uint8_t how = *p++;
            c->personality = (_Unwind_Personality_Fn)(uintptr_t)pointer(&p, how);
        }
    }
    c->initial = p;
    c->initial_end = cie_end;

    p = fde + 8;
    c->function = pointer(&p, encoding);
    uint32_t length = pointer(&p, encoding & 0x0f);
    if (wanted - c->function >= length)
        return 0;
    uint64_t more = unsigned_leb(&p);
    c->program = p + more;
    c->program_end = end;
    c->lsda = lsda_encoding == 0xff ? 0 : (const uint8_t *)(uintptr_t)pointer(&p, lsda_encoding);
    c->arguments = 0;
    return 1;
}

/* A DWARF expression, as far as compilers use them for realigned frames. */
static uint64_t evaluate(const struct _Unwind_Context *c, const uint8_t *p, uint64_t first)
{
    const uint8_t *end;
    uint64_t stack[8] = { first };
    unsigned top = 1;
    uint64_t length = unsigned_leb(&p);
    for (end = p + length; p < end;) {
        uint8_t op = *p++;
        if (op >= 0x70 && op <= 0x80 && top < 8) { /* DW_OP_breg */
            stack[top] = c->reg[op - 0x70] + (uint64_t)signed_leb(&p);
            top++;
        } else if (op >= 0x30 && op <= 0x4f && top < 8) { /* DW_OP_lit */
            stack[top++] = op - 0x30u;
        } else if (op == 0x06) { /* DW_OP_deref */
            stack[top - 1] = quad(stack[top - 1]);
        } else if (op == 0x23) { /* DW_OP_plus_uconst */
            stack[top - 1] += unsigned_leb(&p);
        } else if (op == 0x22 && top > 1) { /* DW_OP_plus */
            top--;
            stack[top - 1] += stack[top];
        } else {
            __postern_abort("unwinder: the frame tables hold an expression that is not understood");
        }
    }
    return stack[top - 1];
}

/* How a row of the table restores a register. */
enum how { SAME, AT_OFFSET, VALUE_OFFSET, IN_REGISTER, EXPRESSION, VALUE_EXPRESSION };

struct row {
    struct {
        uint8_t how;
        int64_t n;
    } rule[REGISTERS];
    uint32_t cfa_register;
    int64_t cfa_offset;
    const uint8_t *cfa_expression;
};

static void run(struct _Unwind_Context *c, const uint8_t *p, const uint8_t *end, struct row *row, const struct row *first)
{
    struct row kept[4];
    unsigned depth = 0;
    uint32_t place = c->function;
    uint64_t which;
    while (p < end && place < c->at) {
        uint8_t op = *p++, low = op & 0x3f;
#define SET(number, way, value) \
    do { \
        uint64_t number_ = (number); \
        int64_t value_ = (int64_t)(value); \
        if (number_ < REGISTERS) { \
            row->rule[number_].how = (way); \
            row->rule[number_].n = value_; \
        } \
    } while (0)
        if (op >= 0xc0) { /* restore */
            if (low < REGISTERS)
                row->rule[low] = first->rule[low];
        } else if (op >= 0x80) { /* offset */
            SET(low, AT_OFFSET, (int64_t)unsigned_leb(&p) * c->data_align);
        } else if (op >= 0x40) { /* advance_loc */
            place += low * c->code_align;
        } else {
            switch (op) {
            case 0x00: break; /* nop */
            case 0x02: place += *p++ * c->code_align; break;
            case 0x03: place += (p[0] | p[1] << 8) * c->code_align; p += 2; break;
            case 0x04: place += word(p) * c->code_align; p += 4; break;
            case 0x05: which = unsigned_leb(&p); SET(which, AT_OFFSET, (int64_t)unsigned_leb(&p) * c->data_align); break;
            case 0x06:
                which = unsigned_leb(&p);
                if (which < REGISTERS)
                    row->rule[which] = first->rule[which];
                break;
            case 0x07: /* undefined */
            case 0x08: which = unsigned_leb(&p); SET(which, SAME, 0); break;
            case 0x09: which = unsigned_leb(&p); SET(which, IN_REGISTER, unsigned_leb(&p)); break;
            case 0x0a:
                if (depth == 4)
                    __postern_abort("unwinder: the frame tables remember too many states");
                kept[depth++] = *row;
                break;
            case 0x0b:
                if (depth)
                    *row = kept[--depth];
                break;
            case 0x0c: row->cfa_register = (uint32_t)unsigned_leb(&p); row->cfa_offset = (int64_t)unsigned_leb(&p); row->cfa_expression = 0; break;
            case 0x0d: row->cfa_register = (uint32_t)unsigned_leb(&p); row->cfa_expression = 0; break;
            case 0x0e: row->cfa_offset = (int64_t)unsigned_leb(&p); row->cfa_expression = 0; break;
            case 0x0f: row->cfa_expression = p; which = unsigned_leb(&p); p += which; break;
            case 0x10: which = unsigned_leb(&p); SET(which, EXPRESSION, (intptr_t)p); which = unsigned_leb(&p); p += which; break;
            case 0x11: which = unsigned_leb(&p); SET(which, AT_OFFSET, signed_leb(&p) * c->data_align); break;
            case 0x12: row->cfa_register = (uint32_t)unsigned_leb(&p); row->cfa_offset = signed_leb(&p) * c->data_align; row->cfa_expression = 0; break;
            case 0x13: row->cfa_offset = signed_leb(&p) * c->data_align; row->cfa_expression = 0; break;
            case 0x14: which = unsigned_leb(&p); SET(which, VALUE_OFFSET, (int64_t)unsigned_leb(&p) * c->data_align); break;
            case 0x16: which = unsigned_leb(&p); SET(which, VALUE_EXPRESSION, (intptr_t)p); which = unsigned_leb(&p); p += which; break;
            case 0x2e: c->arguments = (uint32_t)unsigned_leb(&p); break; /* GNU_args_size */
            default: __postern_abort("unwinder: the frame tables hold an instruction that is not understood");
            }
        }
    }
}

/* The row that holds at the call; describe() came before. */
static void find_row(struct _Unwind_Context *c, struct row *row)
{
    static const struct row empty;
    *row = empty;
    run(c, c->initial, c->initial_end, row, &empty);
    struct row first = *row;
    run(c, c->program, c->program_end, row, &first);
}

/* From a frame to its caller's. False at the end of the call. */
static int step(struct _Unwind_Context *c, const struct row *row)
{
    long at = __postern_return(c->depth);
    if (at < 0)
        return 0;
    uint64_t cfa = row->cfa_expression ? evaluate(c, row->cfa_expression, 0)
        : row->cfa_register < REGISTERS ? c->reg[row->cfa_register] + (uint64_t)row->cfa_offset : 0;
    uint64_t before[REGISTERS];
    __builtin_memcpy(before, c->reg, sizeof before);
    uint64_t after[REGISTERS];
    for (unsigned k = 0; k < REGISTERS - 1; k++) {
        int64_t n = row->rule[k].n;
        switch (row->rule[k].how) {
        case AT_OFFSET: after[k] = quad(cfa + (uint64_t)n); break;
        case VALUE_OFFSET: after[k] = cfa + (uint64_t)n; break;
        case IN_REGISTER: after[k] = n < REGISTERS ? before[n] : 0; break;
        case EXPRESSION: after[k] = quad(evaluate(c, (const uint8_t *)(uintptr_t)n, cfa)); break;
        case VALUE_EXPRESSION: after[k] = evaluate(c, (const uint8_t *)(uintptr_t)n, cfa); break;
        default: after[k] = before[k];
        }
    }
    __builtin_memcpy(c->reg, after, sizeof after);
    c->reg[RSP] = cfa;
    c->at = (uint32_t)at;
    c->depth -= 8;
    return 1;
}

static void begin(struct _Unwind_Context *c, const struct frame *frame)
{
    __builtin_memset(c, 0, sizeof *c);
    c->reg[RBX] = frame->rbx;
    c->reg[RBP] = frame->rbp;
    c->reg[R12] = frame->r12;
    c->reg[R13] = frame->r13;
    c->reg[R14] = frame->r14;
    c->reg[RSP] = frame->stack;
    c->at = frame->at;
    c->depth = frame->depth;
}

static _Noreturn void land(const struct _Unwind_Context *c)
{
    struct frame frame = {
        .rbx = c->reg[RBX], .rbp = c->reg[RBP], .r12 = c->reg[R12], .r13 = c->reg[R13], .r14 = c->reg[R14],
        .stack = c->reg[RSP] + c->arguments, .at = c->at, .depth = c->depth, .rax = c->reg[RAX], .rdx = c->reg[RDX],
    };
    __postern_land(&frame);
}

/* The second phase: cleanups, then the handler. */
static _Unwind_Reason_Code clean_up(struct _Unwind_Context *c, struct _Unwind_Exception *exception)
{
    for (;;) {
        struct row row;
        if (!describe(c))
            return _URC_FATAL_PHASE2_ERROR;
        find_row(c, &row);
        int here = c->depth == exception->private_2;
        if (c->personality) {
            _Unwind_Reason_Code code = c->personality(1, _UA_CLEANUP_PHASE | (here ? _UA_HANDLER_FRAME : 0),
                exception->exception_class, exception, c);
            if (code == _URC_INSTALL_CONTEXT)
                land(c);
            if (code != _URC_CONTINUE_UNWIND)
                return _URC_FATAL_PHASE2_ERROR;
        }
        if (here || !step(c, &row))
            return _URC_FATAL_PHASE2_ERROR;
    }
}

__attribute__((visibility("hidden")))
_Unwind_Reason_Code __postern_raise(const struct frame *frame, struct _Unwind_Exception *exception)
{
    struct _Unwind_Context c;
    begin(&c, frame);
    for (;;) {
        struct row row;
        if (!describe(&c))
            return _URC_END_OF_STACK;
        find_row(&c, &row);
        if (c.personality) {
            _Unwind_Reason_Code code = c.personality(1, _UA_SEARCH_PHASE, exception->exception_class, exception, &c);
            if (code == _URC_HANDLER_FOUND)
                break;
            if (code != _URC_CONTINUE_UNWIND)
                return _URC_FATAL_PHASE1_ERROR;
        }
        if (!step(&c, &row))
            return _URC_END_OF_STACK;
    }
    exception->private_1 = 0;
    exception->private_2 = c.depth;
    begin(&c, frame);
    return clean_up(&c, exception);
}

__attribute__((visibility("hidden")))
void __postern_resume(const struct frame *frame, struct _Unwind_Exception *exception)
{
    struct _Unwind_Context c;
    begin(&c, frame);
    clean_up(&c, exception);
    __postern_abort("unwinder: an exception that was on its way to a handler does not find it any more");
}

__attribute__((visibility("hidden")))
_Unwind_Reason_Code __postern_backtrace(const struct frame *frame, _Unwind_Trace_Fn trace, void *argument)
{
    struct _Unwind_Context c;
    begin(&c, frame);
    for (;;) {
        struct row row;
        int known = describe(&c);
        if (trace(&c, argument) != _URC_NO_REASON)
            return _URC_FATAL_PHASE1_ERROR;
        if (!known)
            return _URC_END_OF_STACK;
        find_row(&c, &row);
        if (!step(&c, &row))
            return _URC_END_OF_STACK;
    }
}

void _Unwind_DeleteException(struct _Unwind_Exception *exception)
{
    if (exception->exception_cleanup)
        exception->exception_cleanup(_URC_FOREIGN_EXCEPTION_CAUGHT, exception);
}

_Unwind_Word _Unwind_GetGR(struct _Unwind_Context *c, int k) { return k >= 0 && k < REGISTERS ? c->reg[k] : 0; }
void _Unwind_SetGR(struct _Unwind_Context *c, int k, _Unwind_Word value)
{
    if (k >= 0 && k < REGISTERS)
        c->reg[k] = value;
}
_Unwind_Ptr _Unwind_GetIP(struct _Unwind_Context *c) { return c->at; }
_Unwind_Ptr _Unwind_GetIPInfo(struct _Unwind_Context *c, int *before)
{
    *before = 0;
    return c->at;
}
void _Unwind_SetIP(struct _Unwind_Context *c, _Unwind_Ptr at) { c->at = (uint32_t)at; }
_Unwind_Word _Unwind_GetCFA(struct _Unwind_Context *c) { return c->reg[RSP]; }
void *_Unwind_GetLanguageSpecificData(struct _Unwind_Context *c) { return (void *)(uintptr_t)c->lsda; }
_Unwind_Ptr _Unwind_GetRegionStart(struct _Unwind_Context *c) { return c->function; }
_Unwind_Ptr _Unwind_GetDataRelBase(struct _Unwind_Context *c) { (void)c; return 0; }
_Unwind_Ptr _Unwind_GetTextRelBase(struct _Unwind_Context *c) { (void)c; return 0; }
