/* What a thread has to do at its end, and that of the program with its last one. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_key_t first, second, deleted;
static int rounds;

static void of_first(void *value)
{
    printf("first %s\n", (char *)value);
    pthread_setspecific(second, "set by a destructor");
}
static void of_second(void *value)
{
    printf("second %s %d\n", (char *)value, pthread_getspecific(second) == NULL);
    if (++rounds < 3)
        pthread_setspecific(first, "once more");
}
static void of_deleted(void *value) { printf("deleted %s\n", (char *)value); }
static void cleanup(void *value) { printf("cleanup %s\n", (char *)value); }
static void at_exit(void) { puts("exit"); }

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    atexit(at_exit);
    pthread_key_create(&first, of_first);
    pthread_key_create(&second, of_second);
    pthread_key_create(&deleted, of_deleted);
    pthread_setspecific(first, "value");
    pthread_setspecific(deleted, "value");
    pthread_key_delete(deleted);
    pthread_cleanup_push(cleanup, "outer");
    pthread_cleanup_push(cleanup, "popped");
    pthread_cleanup_pop(1);
    pthread_cleanup_push(cleanup, "silent");
    pthread_cleanup_pop(0);
    pthread_cleanup_push(cleanup, "inner");
    pthread_exit("value");
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return 1;
}
