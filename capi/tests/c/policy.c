/* System calls: streams, files, a deciding function, a change while the domain lives, programs. */
#include "check.h"
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char printed[64];
static size_t used;
static void print(void *user, const void *bytes, size_t len)
{
    CHECK(user == printed && used + len < sizeof printed);
    memcpy(printed + used, bytes, len);
    used += len;
}
static size_t input(void *user, void *to, size_t room)
{
    int *left = user;
    size_t n = *left > 0 && room ? 1 : 0;
    if (n) *(char *)to = 'a' + (*left)--;
    return n;
}
static int asked;
static int decide(void *user, pt_call *call)
{
    CHECK(user == &asked && call->size == sizeof *call && pt_service_caller());
    asked++;
    if (call->number == SYS_open && !strcmp(call->path, "/virtual")) {
        call->result = 77;
        return PT_EMULATE;
    }
    if (call->number == SYS_read && (int)call->words[0] == 77) {
        CHECK(call->room == 4);
        memcpy(call->answer, "host", 4);
        call->answered = 4;
        call->result = 4;
        return PT_EMULATE;
    }
    if (call->number == SYS_write) {
        CHECK(call->length == 3 && !memcmp(call->bytes, "abc", 3));
        return EIO;
    }
    if (call->number == SYS_rename) {
        CHECK(!strcmp(call->path, "/a") && !strcmp(call->second_path, "/b"));
        CHECK(pt_service_abort("no renaming here") == 0);
        return EPERM;
    }
    return PT_ALLOW;
}

static pt_domain *domain;
static long (*sys)(long, long, long, long, long, long);
static pt_offset memory;
static long on_path(long number, const char *path, long a, long b)
{
    CHECK(pt_domain_write(domain, memory, path, strlen(path) + 1) == 0);
    return sys(number, memory, a, b, 0, 0);
}
static long say(int file, const char *text)
{
    CHECK(pt_domain_write(domain, memory, text, strlen(text)) == 0);
    return sys(SYS_write, file, memory, strlen(text), 0, 0);
}

int main(int argc, char **argv)
{
    (void)argc;
    pt_image *image = pt_image_load(argv[1]);
    CHECK(image);
    domain = pt_domain_new(image, NULL);
    CHECK(domain);
    sys = pt_domain_sym(domain, "call", "l(llllll)");
    pt_offset (*place)(void) = pt_domain_sym(domain, "memory", "p()");
    CHECK(sys && place && (memory = place()));
    uint64_t granted, refused;
    int64_t last;
    CHECK(sys(SYS_getpid, 0, 0, 0, 0, 0) == -EPERM && say(1, "x") == -EPERM);
    CHECK(pt_domain_system_calls(domain, &granted, &refused, &last) == 0 && !granted && refused == 2 && last == SYS_write);

    pt_policy *compute = pt_policy_compute();
    int left = 3;
    CHECK(pt_policy_stdout(compute, print, printed) == 0 && pt_policy_stdin(compute, input, &left) == 0);
    CHECK(pt_policy_stream(compute, 2, PT_DISCARD) == 0 && pt_policy_stream(compute, 3, PT_INHERIT) == PT_E_ARGUMENT);
    CHECK(pt_policy_grant(compute, "/", "/", PT_READ_ONLY) == PT_E_ARGUMENT);
    CHECK(pt_domain_set_policy(domain, compute) == 0);
    CHECK(say(1, "hello") == 5 && say(2, "unheard") == 7 && !strcmp(printed, "hello"));
    CHECK(sys(SYS_read, 0, memory, 10, 0, 0) == 1 && left == 2);

    char directory[] = "/tmp/postern-capi-XXXXXX", inside[64];
    CHECK(mkdtemp(directory));
    pt_policy *files = pt_policy_files();
    CHECK(pt_policy_grant(files, "/data", directory, PT_READ_WRITE) == 0);
    CHECK(pt_policy_grant(files, "/data", directory, PT_READ_ONLY) == PT_E_ARGUMENT);
    CHECK(pt_policy_grant(files, "/none", "/no/such/directory", PT_READ_ONLY) == PT_E_FILE);
    CHECK(pt_policy_grant(files, "/x", directory, 7) == PT_E_ARGUMENT && pt_policy_limits(files, 5, 0, 100) == 0);
    CHECK(pt_domain_set_policy(domain, files) == 0);
    CHECK(on_path(SYS_open, "/data/new", 0101, 0644) == 3 && say(3, "text") == 4);
    CHECK(on_path(SYS_open, "/data/../etc/passwd", 0, 0) == -ENOENT && sys(SYS_lseek, 3, 100, 0, 0, 0) == 100);
    CHECK(say(3, "x") == -EFBIG && on_path(SYS_open, "/data/new", 0, 0) == 4 && on_path(SYS_open, "/data/new", 0, 0) == -EMFILE);
    snprintf(inside, sizeof inside, "%s/new", directory);
    struct stat found;
    CHECK(stat(inside, &found) == 0 && found.st_size == 4 && unlink(inside) == 0 && rmdir(directory) == 0);

    CHECK(pt_policy_custom(compute, decide, &asked) == 0 && pt_domain_set_policy(domain, compute) == 0);
    CHECK(on_path(SYS_open, "/virtual", 0, 0) == 77 && sys(SYS_read, 77, memory, 4, 0, 0) == 4);
    char host[4];
    CHECK(pt_domain_read(domain, memory, host, 4) == 0 && !memcmp(host, "host", 4) && say(1, "abc") == -EIO);
    CHECK(pt_domain_write(domain, memory + 100, "/b", 3) == 0 && on_path(SYS_rename, "/a", memory + 100, 0) == 0);
    CHECK(asked == 4 && strstr(pt_fault_last()->message, "no renaming here"));
    expect(PT_FAULT_ABORTED);
    CHECK(pt_domain_free(domain) == 0);

    /* A program, with a policy from the options. */
    pt_options *options = pt_options_new();
    CHECK(pt_policy_custom(compute, NULL, NULL) == 0 && pt_options_policy(options, compute) == 0);
    CHECK(pt_policy_free(compute) == 0 && pt_policy_free(compute) == PT_E_HANDLE && pt_policy_free(files) == 0);
    domain = pt_domain_new(image, options);
    const char *arguments[] = {"name", "one", "two", NULL}, *environment[] = {"A=1", NULL};
    memset(printed, 0, used), used = 0;
    CHECK(pt_domain_main(domain, 3, arguments, environment) == 3 && !strcmp(printed, "oneA=1"));
    CHECK(pt_domain_main(domain, 1, arguments, NULL) == 1 && pt_domain_main(domain, -1, arguments, NULL) == PT_E_ARGUMENT);
    CHECK(pt_domain_main(domain, 1, NULL, NULL) == PT_E_ARGUMENT && pt_domain_main(NULL, 1, arguments, NULL) == PT_E_HANDLE);
    CHECK(pt_domain_set_policy(domain, NULL) == 0 && pt_options_policy(options, NULL) == 0);
    CHECK(pt_domain_free(domain) == 0 && pt_options_free(options) == 0 && pt_image_free(image) == 0);
    return 0;
}
