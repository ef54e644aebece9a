/* Directories: the system writes entries into a buffer, readdir hands them out. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call.h"

struct __postern_directory {
    int fd;
    long at, filled, place;
    struct dirent entry;
    _Alignas(16) char buffer[4096];
};

DIR *fdopendir(int fd)
{
    DIR *directory = malloc(sizeof *directory);
    if (directory) {
        directory->fd = fd;
        directory->at = directory->filled = directory->place = 0;
    }
    return directory;
}

DIR *opendir(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    DIR *directory = fdopendir(fd);
    if (!directory)
        close(fd);
    return directory;
}

int closedir(DIR *directory)
{
    int result = close(directory->fd);
    free(directory);
    return result;
}

int dirfd(DIR *directory) { return directory->fd; }

/* The entry is copied, since the buffer's may be shorter than the structure. */
struct dirent *readdir(DIR *directory)
{
    if (directory->at >= directory->filled) {
        directory->filled = CALL3(getdents64, directory->fd, directory->buffer, sizeof directory->buffer);
        directory->at = 0;
        if (directory->filled <= 0) {
            directory->filled = 0;
            return 0;
        }
    }
    const struct dirent *found = (const void *)(directory->buffer + directory->at);
    size_t size = found->d_reclen;
    if (size < 20 || size > (size_t)(directory->filled - directory->at)) {
        errno = EIO;
        return 0;
    }
    memcpy(&directory->entry, found, size < sizeof directory->entry ? size : sizeof directory->entry);
    directory->entry.d_name[255] = 0;
    directory->at += (long)size;
    directory->place = directory->entry.d_off;
    return &directory->entry;
}

int readdir_r(DIR *restrict directory, struct dirent *restrict entry, struct dirent **restrict out)
{
    int before = errno;
    errno = 0;
    struct dirent *found = readdir(directory);
    int failed = errno;
    errno = before;
    if (found)
        *entry = *found;
    *out = found ? entry : 0;
    return failed;
}

void seekdir(DIR *directory, long place)
{
    lseek(directory->fd, place, SEEK_SET);
    directory->at = directory->filled = 0;
    directory->place = place;
}
void rewinddir(DIR *directory) { seekdir(directory, 0); }
long telldir(DIR *directory) { return directory->place; }

int alphasort(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

int scandir(const char *path, struct dirent ***out, int (*wanted)(const struct dirent *),
            int (*order)(const struct dirent **, const struct dirent **))
{
    DIR *directory = opendir(path);
    if (!directory)
        return -1;
    struct dirent **list = 0, *entry;
    size_t count = 0, room = 0;
    while ((entry = readdir(directory))) {
        if (wanted && !wanted(entry))
            continue;
        if (count == room) {
            struct dirent **more = realloc(list, (room = room ? 2 * room : 16) * sizeof *list);
            if (!more)
                goto failed;
            list = more;
        }
        if (!(list[count] = malloc(sizeof **list)))
            goto failed;
        *list[count++] = *entry;
    }
    closedir(directory);
    if (order && count)
        qsort(list, count, sizeof *list, (int (*)(const void *, const void *))order);
    *out = list;
    return (int)count;
failed:
    while (count)
        free(list[--count]);
    free(list);
    closedir(directory);
    return -1;
}
