/* SQLite's file system, of which a database in memory needs only to be told that there is none. */
#include "sqlite3.h"
#include <string.h>

static int no_file(sqlite3_vfs *v, const char *name, sqlite3_file *file, int flags, int *out)
{
    (void)v, (void)name, (void)file, (void)flags, (void)out;
    return SQLITE_CANTOPEN;
}

static int no_delete(sqlite3_vfs *v, const char *name, int sync)
{
    (void)v, (void)name, (void)sync;
    return SQLITE_IOERR;
}

static int no_access(sqlite3_vfs *v, const char *name, int flags, int *result)
{
    (void)v, (void)name, (void)flags;
    *result = 0;
    return SQLITE_OK;
}

static int no_path(sqlite3_vfs *v, const char *name, int n, char *out)
{
    (void)v, (void)name, (void)n, (void)out;
    return SQLITE_CANTOPEN;
}

/* The same numbers in every run. */
static int randomness(sqlite3_vfs *v, int n, char *out)
{
    (void)v;
    memset(out, 7, (size_t)n);
    return n;
}

static int no_sleep(sqlite3_vfs *v, int microseconds)
{
    (void)v;
    return microseconds;
}

static int no_time(sqlite3_vfs *v, double *day)
{
    (void)v;
    *day = 2460000;
    return SQLITE_OK;
}

static int no_error(sqlite3_vfs *v, int n, char *out)
{
    (void)v, (void)n, (void)out;
    return SQLITE_OK;
}

static sqlite3_vfs none = {
    .iVersion = 1,
    .szOsFile = sizeof(sqlite3_file),
    .mxPathname = 100,
    .zName = "none",
    .xOpen = no_file,
    .xDelete = no_delete,
    .xAccess = no_access,
    .xFullPathname = no_path,
    .xRandomness = randomness,
    .xSleep = no_sleep,
    .xCurrentTime = no_time,
    .xGetLastError = no_error,
};

int sqlite3_os_init(void) { return sqlite3_vfs_register(&none, 1); }
int sqlite3_os_end(void) { return SQLITE_OK; }
