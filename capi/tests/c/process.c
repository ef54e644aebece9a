/* What pt_config says, each in a process of its own; handlers exchanged around a fork; a fork at a
 * thread's very end. */
#define _GNU_SOURCE
#include "check.h"
#include <asm/prctl.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *file;
static pt_domain *domain;
static long (*add)(int, int);
static int (*twice_plus)(int), (*recurse)(int);
static void (*trap)(void);

static void begin(pt_config config)
{
    config.size = sizeof config;
    CHECK(pt_init(&config) == 0);
    domain = kit_domain(file, 0);
    add = PT_SYM(domain, long, add, (int, int));
    twice_plus = PT_SYM(domain, int, twice_plus, (int));
    recurse = PT_SYM(domain, int, recurse, (int));
    trap = PT_SYM(domain, void, trap, (void));
    CHECK(add && twice_plus && recurse && trap);
}

static unsigned long gs(void)
{
    unsigned long base = 0;
    CHECK(syscall(SYS_arch_prctl, ARCH_GET_GS, &base) == 0);
    return base;
}

static void gs_comes_back(void)
{
    static char mine[4096];
    begin((pt_config){.flags = PT_RESTORE_GS});
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, mine) == 0);
    CHECK(add(1, 2) == 3 && gs() == (unsigned long)mine);
    CHECK(twice_plus(2) == 5 && gs() == (unsigned long)mine);
    trap();
    expect(PT_FAULT_TRAP);
    CHECK(gs() == (unsigned long)mine);
}

static void control_stacks_have_the_size_asked_for(void)
{
    /* The thread's own has 8 MiB or more. */
    begin((pt_config){.control_stack = 2 << 20});
    recurse(1);
    const pt_fault *fault = pt_fault_last();
    CHECK(fault && fault->depth > (1 << 20) / 8 && fault->depth <= (2 << 20) / 8);
    expect(PT_FAULT_CONTROL_STACK_OVERFLOW);
    CHECK(pt_domain_reset(domain) == 0 && twice_plus(2) == 5);
}

/* Writable mappings that a dump leaves out. */
static int left_out(void)
{
    char line[512];
    int count = 0;
    FILE *smaps = fopen("/proc/self/smaps", "r");
    CHECK(smaps);
    while (fgets(line, sizeof line, smaps))
        count += !strncmp(line, "VmFlags:", 8) && strstr(line, " wr") && strstr(line, " dd");
    fclose(smaps);
    return count;
}

static void dumps_leave_extensions_out(void)
{
    begin((pt_config){0});
    CHECK(add(1, 2) == 3 && left_out() > 0);
}

static void dumps_have_extensions_where_asked(void)
{
    begin((pt_config){.flags = PT_DUMP});
    CHECK(add(1, 2) == 3 && left_out() == 0);
}

static void heaps_have_a_ceiling(void)
{
    begin((pt_config){0});
    pt_options *options = kit_options();
    pt_image *image = pt_image_load(file);
    /* Its variables that begin as zero are a wish. */
    CHECK(pt_options_heap_ceiling(options, 1) == 0 && !pt_domain_new(image, options));
    CHECK(pt_error_code() == PT_E_LIMIT && strstr(pt_error_message(), "heap_ceiling"));
    CHECK(pt_options_heap(options, 1 << 20) == 0 && !pt_domain_new(image, options));
    CHECK(pt_options_heap_ceiling(options, 0) == 0 && pt_domain_free(pt_domain_new(image, options)) == 0);
    CHECK(pt_options_heap_ceiling(NULL, 1) == PT_E_HANDLE);
    CHECK(pt_options_data_stack(options, 65 << 20) == 0 && !pt_domain_new(image, options));
    CHECK(pt_error_code() == PT_E_LIMIT && strstr(pt_error_message(), "64 MiB"));
    CHECK(pt_options_data_stack(options, 4 << 20) == 0 && pt_domain_free(pt_domain_new(image, options)) == 0);
    CHECK(pt_options_data_stack(options, 0) == 0 && pt_options_data_stack(NULL, 1) == PT_E_HANDLE);
}

static void plain(int signal)
{
    (void)signal;
}

static void install(int signal, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    CHECK(sigaction(signal, &action, NULL) == 0);
}

static void handlers_without_a_stack_are_refused(void)
{
    begin((pt_config){0});
    install(SIGTERM, plain, 0);
    CHECK(add(1, 2) == 0 && pt_error_code() == PT_E_HANDLER_STACK);
    CHECK(strstr(pt_error_message(), "SIGTERM") && strstr(pt_error_message(), "SA_ONSTACK") && strstr(pt_error_message(), "PT_ADOPT_HANDLERS"));
    CHECK(add(1, 2) == 0 && pt_error_code() == PT_E_HANDLER_STACK);
    install(SIGTERM, plain, SA_ONSTACK);
    CHECK(add(1, 2) == 3);
}

static int ends_well(pid_t child)
{
    int status = -1;
    CHECK(child >= 0);
    while (waitpid(child, &status, 0) < 0)
        CHECK(errno == EINTR);
    return status == 0;
}

static void exchanged_handlers_are_mended(void)
{
    begin((pt_config){0});
    CHECK(add(1, 2) == 3);
    const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGRTMAX - 3};
    for (int i = 0; i < 6; i++) {
        pid_t child = fork();
        if (child == 0) {
            install(signals[i], i % 2 ? plain : SIG_DFL, SA_ONSTACK);
            CHECK(add(1, 2) == 0 && pt_error_code() == PT_E_HANDLER_REPLACED);
            CHECK(add(1, 2) == 0 && pt_error_code() == PT_E_HANDLER_REPLACED);
            CHECK(pt_rearm() == 0 && add(1, 2) == 3);
            trap();
            expect(PT_FAULT_TRAP);
            _exit(0);
        }
        CHECK(ends_well(child) && add(1, 2) == 3);
    }
    /* Later, in a process that forks no more: whoever exchanges one says so, and the others work
     * on. */
    for (int i = 0; i < 6; i++) {
        install(signals[i], i % 2 ? plain : SIG_DFL, SA_ONSTACK);
        CHECK(pt_rearm() == 0 && add(1, 2) == 3);
        trap();
        expect(PT_FAULT_TRAP);
        CHECK(pt_domain_reset(domain) == 0);
    }
}

static void at_the_end(void *value)
{
    (void)value;
    pid_t child = fork();
    if (child == 0) {
        CHECK(add(1, 2) == 3);
        _exit(0);
    }
    CHECK(ends_well(child) && add(1, 2) == 3);
}

static pthread_key_t key;

static void *forks(void *unused)
{
    (void)unused;
    pid_t child = fork();
    if (child == 0) _exit(0);
    CHECK(ends_well(child) && pthread_setspecific(key, &key) == 0);
    return NULL;
}

static void threads_fork_at_their_end(void)
{
    begin((pt_config){0});
    pthread_t thread;
    CHECK(pthread_key_create(&key, at_the_end) == 0 && pthread_create(&thread, NULL, forks, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0 && add(1, 2) == 3);
}

int main(int argc, char **argv)
{
    (void)argc;
    file = argv[1];
    static void (*const all[])(void) = {
        gs_comes_back,
        control_stacks_have_the_size_asked_for,
        dumps_leave_extensions_out,
        dumps_have_extensions_where_asked,
        heaps_have_a_ceiling,
        handlers_without_a_stack_are_refused,
        exchanged_handlers_are_mended,
        threads_fork_at_their_end,
    };
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        pid_t child = fork();
        if (child == 0) {
            all[i]();
            exit(0);
        }
        if (!ends_well(child)) {
            fprintf(stderr, "number %u did not end well\n", i);
            return 1;
        }
    }
    return 0;
}
