/* Threads that extensions start: as many as the host grants, on which its services are called, and
 * gone after a reset, after a fault and with the domain. */
#define _GNU_SOURCE
#include "check.h"
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_t host;
static atomic_int meetings, elsewhere;

/* Both threads that there may be are in here at once. */
static int met(int number)
{
    if (!pthread_equal(pthread_self(), host)) elsewhere++;
    CHECK(pt_service_caller());
    meetings++;
    while (meetings < 2) usleep(100);
    return number == 7;
}

static pt_domain *make(const char *path, uint32_t threads)
{
    pt_options *options = pt_options_new();
    CHECK(pt_options_service(options, "met", (void *)met, "i(i)") == 0);
    CHECK(pt_options_deadline(options, 0) == 0);
    CHECK(threads == 0 || pt_options_own_threads(options, threads) == 0);
    pt_image *image = pt_image_load(path);
    CHECK(image);
    pt_domain *domain = pt_domain_new(image, options);
    CHECK(domain && pt_image_free(image) == 0 && pt_options_free(options) == 0);
    return domain;
}

/* Threads of the process that extensions started. */
static int tasks(void)
{
    int count = 0;
    DIR *all = opendir("/proc/self/task");
    CHECK(all);
    for (struct dirent *task; (task = readdir(all));) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        count += fgets(name, sizeof name, file) && !strcmp(name, "postern-thread\n");
        fclose(file);
    }
    closedir(all);
    return count;
}

static int child(pt_domain *domain)
{
    alarm(60);
    int (*start_spinning)(void) = PT_SYM(domain, int, start_spinning, (void));
    CHECK(tasks() == 0 && pt_domain_poisoned(domain) && pt_domain_reset(domain) == 0);
    CHECK(start_spinning() == 0 && start_spinning() == 0 && start_spinning() < 0 && !pt_fault_last());
    CHECK(tasks() == 2 && pt_domain_free(domain) == 0);
    return 0;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    host = pthread_self();
    pt_domain *none = make(argv[1], 0);
    CHECK(PT_SYM(none, int, crowd, (int, long))(2, 10) == 0 && pt_domain_free(none) == 0);

    pt_domain *domain = make(argv[1], 2);
    int (*crowd)(int, long) = PT_SYM(domain, int, crowd, (int, long));
    unsigned (*counted)(void) = PT_SYM(domain, unsigned, counted, (void));
    int (*start_spinning)(void) = PT_SYM(domain, int, start_spinning, (void));
    int (*start_breaking)(void) = PT_SYM(domain, int, start_breaking, (void));
    CHECK(crowd(2, 1000) == 2 && !pt_fault_last() && counted() == 2002000);
    CHECK(meetings == 2 && elsewhere == 2);

    for (int round = 0; round < 5; round++) {
        CHECK(pt_domain_reset(domain) == 0 && counted() == 0 && tasks() == 0);
        CHECK(start_spinning() == 0 && start_spinning() == 0 && start_spinning() < 0 && tasks() == 2);
        while (counted() == 0) usleep(100);
    }
    pid_t forked = fork();
    if (forked == 0) _exit(child(domain));
    int status;
    CHECK(forked > 0 && waitpid(forked, &status, 0) == forked && status == 0 && tasks() == 2);

    CHECK(pt_domain_reset(domain) == 0);
    /* The fault may end this call, too. */
    CHECK(start_spinning() == 0 && (start_breaking() == 0 || pt_fault_last()));
    pt_fault_clear();
    while (!pt_domain_poisoned(domain)) usleep(100);
    CHECK(pt_domain_reset(domain) == 0 && counted() == 0 && tasks() == 0);
    CHECK(start_spinning() == 0 && pt_domain_free(domain) == 0);
    for (int turn = 0; tasks() && turn < 60000; turn++) usleep(1000);
    CHECK(tasks() == 0);
    return 0;
}
