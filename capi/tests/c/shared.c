/* Memory that the host and several domains see at once, each with its own protection. */
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    (void)argc;
    pt_domain *one = kit_domain(argv[1], 0), *two = kit_domain(argv[1], 0);
    int (*load_one)(pt_offset) = PT_SYM(one, int, load, (pt_offset)), (*load_two)(pt_offset) = PT_SYM(two, int, load, (pt_offset));
    void (*store_one)(pt_offset, int) = PT_SYM(one, void, store, (pt_offset, int));
    void (*store_two)(pt_offset, int) = PT_SYM(two, void, store, (pt_offset, int));
    pt_shared *shared = pt_shared_new(5000);
    CHECK(shared);
    int *host = pt_shared_address(shared);
    pt_offset at = pt_domain_expose(one, shared, PT_READ_WRITE);
    CHECK(host && at && at == (uint32_t)(uintptr_t)host && pt_domain_expose(two, shared, PT_READ_ONLY) == at);
    CHECK(pt_domain_expose(one, shared, PT_READ_WRITE) == at && pt_domain_expose(two, shared, PT_READ_WRITE) == 0);
    CHECK(pt_error_code() == PT_E_ARGUMENT && pt_domain_expose(one, shared, 7) == 0 && pt_domain_expose(one, NULL, 1) == 0);

    host[1] = 17;
    CHECK(load_one(at + 4) == 17 && load_two(at + 4) == 17);
    store_one(at + 8, 23);
    CHECK(host[2] == 23 && load_two(at + 8) == 23);
    /* A host pointer works as it is. */
    *(int **)host = &host[2];
    CHECK(load_one(load_one(at)) == 23 && load_two(load_two(at)) == 23);
    pt_fault_clear();
    store_two(at + 8, 99);
    CHECK(pt_fault_last() && pt_fault_last()->address == at + 8);
    expect(PT_FAULT_READ_ONLY);
    CHECK(host[2] == 23 && pt_domain_reset(two) == 0 && load_two(at + 8) == 23);
    /* The host's checked copies know of it. */
    int value = 5;
    CHECK(pt_domain_write(one, at + 12, &value, 4) == 0 && pt_domain_write(two, at + 12, &value, 4) == PT_E_RANGE);
    value = 0;
    CHECK(pt_domain_read(two, at + 12, &value, 4) == 0 && value == 5);
    CHECK(pt_domain_read(two, at + 8188, &value, 4) == 0 && pt_domain_read(two, at + 8192, &value, 1) == PT_E_RANGE);
    CHECK(load_one(at + 8192) == 0);
    expect(PT_FAULT_READ);
    CHECK(pt_domain_reset(one) == 0);

    /* Others lie elsewhere; a place that is free again is used again, with other bytes. */
    pt_shared *other = pt_shared_new(4096);
    pt_offset elsewhere = pt_domain_expose(one, other, PT_READ_ONLY);
    CHECK(elsewhere && elsewhere + 4096 < at);
    CHECK(pt_shared_free(shared) == 0 && pt_shared_free(shared) == PT_E_HANDLE && host[2] == 23 && load_one(at + 8) == 23);
    CHECK(pt_domain_free(one) == 0 && load_two(at + 8) == 23 && pt_domain_free(two) == 0);
    one = kit_domain(argv[1], 0);
    load_one = PT_SYM(one, int, load, (pt_offset));
    pt_fault_clear();
    CHECK(load_one(at) == 0);
    expect(PT_FAULT_READ);
    CHECK(pt_domain_reset(one) == 0);
    shared = pt_shared_new(5000);
    CHECK(pt_domain_expose(one, shared, PT_READ_WRITE) == at && load_one(at + 8) == 0 && !pt_fault_last());

    /* Files of the host's own. */
    int fd = memfd_create("host", MFD_ALLOW_SEALING);
    CHECK(fd >= 0 && ftruncate(fd, 3 * 4096) == 0);
    CHECK(!pt_shared_from_fd(fd, 100, 4096) && !pt_shared_from_fd(fd, 4096, 3 * 4096) && !pt_shared_from_fd(fd, 0, 0));
    CHECK(!pt_shared_from_fd(-1, 0, 1) && !pt_shared_from_fd(0, 0, 1) && !pt_shared_from_fd(fd, UINT64_MAX - 4095, 4096));
    CHECK(!pt_shared_new(0) && !pt_shared_new(SIZE_MAX) && !pt_shared_new(UINT32_MAX) && pt_error_code() == PT_E_ARGUMENT);
    value = 77;
    CHECK(pwrite(fd, &value, 4, 4096) == 4);
    pt_shared *file = pt_shared_from_fd(fd, 4096, 8192);
    at = pt_domain_expose(one, file, PT_READ_WRITE);
    CHECK(at && load_one(at) == 77);
    void (*store)(pt_offset, int) = PT_SYM(one, void, store, (pt_offset, int));
    store(at + 4096, 78);
    CHECK(pread(fd, &value, 4, 8192) == 4 && value == 78);
    /* One that nobody can write any more. */
    int sealed = memfd_create("sealed", MFD_ALLOW_SEALING);
    CHECK(write(sealed, &value, 4) == 4 && fcntl(sealed, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE) == 0);
    file = pt_shared_from_fd(sealed, 0, 4);
    CHECK(file && pt_domain_expose(one, file, PT_READ_WRITE) == 0 && strstr(pt_error_message(), "read-only"));
    at = pt_domain_expose(one, file, PT_READ_ONLY);
    CHECK(at && load_one(at) == 78);
    CHECK(close(fd) == 0 && close(sealed) == 0 && load_one(at) == 78);

    /* A heap that reaches up there. */
    pt_options *options = kit_options();
    CHECK(pt_options_heap(options, 0xff000000u) == 0);
    pt_image *image = pt_image_load(argv[1]);
    one = pt_domain_new(image, options);
    CHECK(one || pt_error_code() == PT_E_LIMIT);
    CHECK(pt_options_heap(options, 0xfff00000u - 0x100000u) == 0);
    if (!one) one = pt_domain_new(image, options);
    pt_shared *large = pt_shared_new(64 << 20);
    CHECK(one && large && pt_domain_expose(one, large, PT_READ_ONLY) == 0 && pt_error_code() == PT_E_LIMIT);
    return 0;
}
