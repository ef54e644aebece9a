/* ftw and nftw: all that is below a folder, one call for each. */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <string.h>

struct walk {
    int (*short_call)(const char *, const struct stat *, int);
    int (*call)(const char *, const struct stat *, int, struct FTW *);
    int flags;
    char path[PATH_MAX];
};

static int tell(struct walk *w, const struct stat *status, int kind, struct FTW *place)
{
    if (w->call)
        return w->call(w->path, status, kind, place);
    return w->short_call(w->path, status, kind == FTW_SL ? FTW_F : kind == FTW_SLN ? FTW_NS : kind);
}

static int walk(struct walk *w, size_t n, int level)
{
    struct stat status;
    const char *last = strrchr(w->path, '/');
    struct FTW place = { last && last[1] ? (int)(last + 1 - w->path) : 0, level };
    int kind = FTW_F, result;
    if ((w->flags & FTW_PHYS ? lstat : stat)(w->path, &status)) {
        if (errno != EACCES && errno != ENOENT)
            return -1;
        kind = lstat(w->path, &status) ? FTW_NS : FTW_SLN;
    } else if (S_ISLNK(status.st_mode)) {
        kind = FTW_SL;
    }
    if (kind != FTW_F || !S_ISDIR(status.st_mode))
        return tell(w, &status, kind, &place);
    DIR *folder = opendir(w->path);
    if (!folder)
        return tell(w, &status, FTW_DNR, &place);
    result = w->flags & FTW_DEPTH ? 0 : tell(w, &status, FTW_D, &place);
    for (struct dirent *entry; !result && (entry = readdir(folder));) {
        size_t more = strlen(entry->d_name);
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        if (n + more + 2 > sizeof w->path || level > 200) {
            errno = ENAMETOOLONG;
            result = -1;
            break;
        }
        size_t at = n;
        if (w->path[at - 1] != '/')
            w->path[at++] = '/';
        strcpy(w->path + at, entry->d_name);
        result = walk(w, at + more, level + 1);
        w->path[n] = 0;
    }
    closedir(folder);
    if (!result && (w->flags & FTW_DEPTH))
        result = tell(w, &status, FTW_DP, &place);
    return result;
}

static int begin(struct walk *w, const char *path)
{
    size_t n = strlen(path);
    if (!n || n >= sizeof w->path) {
        errno = n ? ENAMETOOLONG : ENOENT;
        return -1;
    }
    strcpy(w->path, path);
    return walk(w, n, 0);
}
int ftw(const char *path, int (*call)(const char *, const struct stat *, int), int most)
{
    struct walk w = { call, 0, 0, "" };
    return begin(&w, path);
}
int nftw(const char *path, int (*call)(const char *, const struct stat *, int, struct FTW *), int most, int flags)
{
    struct walk w = { 0, call, flags, "" };
    return begin(&w, path);
}
