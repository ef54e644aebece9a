/* WASI preview 1 for a command that reads and writes its standard streams: its functions over the
 * service `sys`.
 *
 * What a call does is decided by the domain's policy, as for any extension. No folder is opened
 * beforehand, so a module finds no files. Every address that the module gives is checked as an
 * access of the module itself would be. */
#ifndef POSTERN_WASM_WASI
#define POSTERN_WASM_WASI

#define WASI_BADF 8u
#define WASI_NOSYS 52u

/* Linux's numbers for x86-64. */
enum {
    WASI_SYS_READ = 0,
    WASI_SYS_WRITE = 1,
    WASI_SYS_CLOSE = 3,
    WASI_SYS_FSTAT = 5,
    WASI_SYS_LSEEK = 8,
    WASI_SYS_SCHED_YIELD = 24,
    WASI_SYS_CLOCK_GETTIME = 228,
    WASI_SYS_EXIT_GROUP = 231,
    WASI_SYS_GETRANDOM = 318,
};

POSTERN_IMPORT long sys(long number, long a, long b, long c, long d, long e);

static int wasi_argc;
static char **wasi_argv, **wasi_environ, *wasi_nothing[1];

static __attribute__((unused)) void wasi_given(int argc, char **argv)
{
    wasi_argc = argc;
    wasi_argv = argv;
    wasi_environ = argv + argc + 1;
}

/* WASI's name of Linux's -errno. */
static __attribute__((unused)) u32 wasi_error(long result)
{
    static const u8 numbers[41] = {
        [1] = 63,  [2] = 44,  [4] = 27,  [5] = 29,  [6] = 60,  [9] = 8,   [11] = 6,  [12] = 48, [13] = 2,
        [14] = 21, [17] = 20, [20] = 54, [21] = 31, [22] = 28, [24] = 33, [25] = 59, [27] = 22, [28] = 51,
        [29] = 70, [30] = 69, [32] = 64, [38] = 52,
    };
    if (result >= 0)
        return 0;
    u32 number = -result <= 40 ? numbers[-result] : 0;
    return number ? number : 29;
}

static __attribute__((unused)) u32 wasi_load(u32 at)
{
    u32 value;
    WASM_CHECK(at, 4);
    __builtin_memcpy(&value, &wasm_data[at], 4);
    return value;
}

static __attribute__((unused)) void wasi_store(u32 at, u64 value, u32 bytes)
{
    WASM_CHECK(at, bytes);
    __builtin_memcpy(&wasm_data[at], &value, bytes);
}

static long wasi_call(long number, long a, long b, long c) { return sys(number, a, b, c, 0, 0); }

/* Reads or writes buffer after buffer until one is not moved in full. */
static u32 wasi_transfer(long number, u32 fd, u32 vectors, u32 count, u32 moved)
{
    u32 total = 0;
    for (u32 k = 0; k < count; k++) {
        /* An array of vectors that leaves the memory traps at its first entry outside. */
        WASM_CHECK((u64)vectors + 8ull * k, 8);
        u32 buffer = wasi_load(vectors + 8 * k), bytes = wasi_load(vectors + 8 * k + 4);
        WASM_CHECK(buffer, bytes);
        if (!bytes)
            continue;
        long result = wasi_call(number, (int)fd, (long)&wasm_data[buffer], bytes);
        if (result < 0 && !total)
            return wasi_error(result);
        if (result > 0)
            total += (u32)result;
        if (result != (long)bytes)
            break;
    }
    wasi_store(moved, total, 4);
    return 0;
}

static __attribute__((unused)) u32 wasi_fd_write(u32 fd, u32 vectors, u32 count, u32 moved)
{
    return wasi_transfer(WASI_SYS_WRITE, fd, vectors, count, moved);
}

static __attribute__((unused)) u32 wasi_fd_read(u32 fd, u32 vectors, u32 count, u32 moved)
{
    return wasi_transfer(WASI_SYS_READ, fd, vectors, count, moved);
}

static __attribute__((unused)) u32 wasi_fd_close(u32 fd) { return wasi_error(wasi_call(WASI_SYS_CLOSE, (int)fd, 0, 0)); }

static __attribute__((unused)) u32 wasi_fd_seek(u32 fd, u64 offset, u32 whence, u32 result)
{
    long place = wasi_call(WASI_SYS_LSEEK, (int)fd, (long)offset, whence);
    if (place < 0)
        return wasi_error(place);
    wasi_store(result, (u64)place, 8);
    return 0;
}

/* Kind of file, flags, rights, rights of what is opened in it. */
static __attribute__((unused)) u32 wasi_fd_fdstat_get(u32 fd, u32 result)
{
    u64 stat[18];
    long answer = wasi_call(WASI_SYS_FSTAT, (int)fd, (long)stat, 0);
    if (answer < 0)
        return wasi_error(answer);
    u32 format = (u32)stat[3] & 0170000;
    u32 kind = format == 0020000 ? 2 : format == 0040000 ? 3 : format == 0100000 ? 4 : 0;
    u64 seek_and_tell = 1 << 2 | 1 << 5;
    wasi_store(result, kind, 8);
    wasi_store(result + 8, kind == 2 ? ~seek_and_tell : ~0ull, 8);
    wasi_store(result + 16, 0, 8);
    return 0;
}

static __attribute__((unused)) u32 wasi_fd_prestat_get(u32 fd, u32 result)
{
    (void)fd, (void)result;
    return WASI_BADF;
}

static __attribute__((unused)) u32 wasi_clock_time_get(u32 clock, u64 precision, u32 result)
{
    u64 time[2];
    (void)precision;
    long answer = wasi_call(WASI_SYS_CLOCK_GETTIME, clock, (long)time, 0);
    if (answer < 0)
        return wasi_error(answer);
    wasi_store(result, time[0] * 1000000000 + time[1], 8);
    return 0;
}

static __attribute__((unused)) u32 wasi_random_get(u32 buffer, u32 bytes)
{
    WASM_CHECK(buffer, bytes);
    for (u32 done = 0; done < bytes;) {
        long result = wasi_call(WASI_SYS_GETRANDOM, (long)&wasm_data[buffer + done], bytes - done, 0);
        if (result <= 0)
            return wasi_error(result ? result : -5);
        done += (u32)result;
    }
    return 0;
}

static __attribute__((unused)) u32 wasi_sched_yield(void)
{
    return wasi_error(wasi_call(WASI_SYS_SCHED_YIELD, 0, 0, 0));
}

/* Arguments and environment: how many and how long, and the strings with their addresses. */
static u32 wasi_sizes(char **strings, u32 count, u32 length)
{
    u32 bytes = 0, k = 0;
    for (; strings[k]; k++)
        bytes += (u32)__builtin_strlen(strings[k]) + 1;
    wasi_store(count, k, 4);
    wasi_store(length, bytes, 4);
    return 0;
}

static u32 wasi_strings(char **strings, u32 addresses, u32 buffer)
{
    for (u32 k = 0; strings[k]; k++) {
        u32 bytes = (u32)__builtin_strlen(strings[k]) + 1;
        WASM_CHECK(buffer, bytes);
        WASM_CHECK((u64)addresses + 4ull * k, 4);
        __builtin_memcpy(&wasm_data[buffer], strings[k], bytes);
        wasi_store(addresses + 4 * k, buffer, 4);
        buffer += bytes;
    }
    return 0;
}

#define WASI_ARGV (wasi_argv ? wasi_argv : wasi_nothing)
#define WASI_ENVIRON (wasi_environ ? wasi_environ : wasi_nothing)

static __attribute__((unused)) u32 wasi_args_sizes_get(u32 count, u32 length) { return wasi_sizes(WASI_ARGV, count, length); }
static __attribute__((unused)) u32 wasi_args_get(u32 addresses, u32 buffer) { return wasi_strings(WASI_ARGV, addresses, buffer); }
static __attribute__((unused)) u32 wasi_environ_sizes_get(u32 count, u32 length)
{
    return wasi_sizes(WASI_ENVIRON, count, length);
}
static __attribute__((unused)) u32 wasi_environ_get(u32 addresses, u32 buffer)
{
    return wasi_strings(WASI_ENVIRON, addresses, buffer);
}

static __attribute__((unused, noreturn)) void wasi_proc_exit(u32 status)
{
    wasi_call(WASI_SYS_EXIT_GROUP, (int)status, 0, 0);
    __postern_exit((int)status);
}

#endif
