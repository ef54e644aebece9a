/* Extensions of the kernel where no module is loaded, and bad arguments. What the device does is
 * tested in machines. */
#include "check.h"
#include <postern-kernel.h>

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    CHECK(!pt_kernel_new("/dev/no-such-device"));
    CHECK(pt_error_code() == PT_E_MACHINE && strstr(pt_error_message(), "modprobe postern"));
    CHECK(pt_kernel_load(NULL, argv[1], NULL) == PT_E_HANDLE);

    /* A device, but another's: it knows none of the requests. */
    pt_kernel *kernel = pt_kernel_new("/dev/null");
    CHECK(kernel);
    CHECK(pt_kernel_load(kernel, argv[1], NULL) == PT_E_MACHINE);
    CHECK(strstr(pt_error_message(), "another version"));
    CHECK(pt_kernel_load(kernel, "/no/such/file", NULL) == PT_E_FILE);
    CHECK(pt_kernel_load(kernel, NULL, NULL) == PT_E_ARGUMENT);
    CHECK(pt_kernel_unload(kernel, 1) == PT_E_MACHINE);
    CHECK(pt_kernel_next(kernel, 0) == 0);
    CHECK(pt_kernel_find(kernel, "rules") == PT_E_MISSING);
    uint64_t arguments[7] = {0};
    int64_t value;
    CHECK(pt_kernel_call(kernel, 1, "f", arguments, 7, &value) == PT_E_ARGUMENT);
    CHECK(pt_kernel_call(kernel, 1, "f", NULL, 0, NULL) == PT_E_MACHINE);
    CHECK(pt_kernel_queue(kernel, 1, NULL, NULL, 0) == PT_E_ARGUMENT);
    CHECK(pt_kernel_statistics_of(kernel, 1, NULL) == PT_E_ARGUMENT);
    CHECK(pt_kernel_attach_netfilter(kernel, 1, "f", 0, 3, 0, 0, 0) == PT_E_ARGUMENT);
    CHECK(pt_kernel_attach_netfilter(kernel, 1, "f", 0, PT_KERNEL_IPV4, 0, 0, 0) == PT_E_MACHINE);
    CHECK(pt_kernel_attach_timer(kernel, 1, "f", 1000) == PT_E_MACHINE);
    CHECK(pt_kernel_map_get(kernel, 1, 0, NULL, 4, &value, 8) == PT_E_ARGUMENT);
    CHECK(pt_kernel_map_get(kernel, 1, 0, "key", 3, &value, 8) == PT_E_MACHINE);
    CHECK(!pt_kernel_opened_new(kernel, 1) && pt_error_code() == PT_E_MACHINE);
    CHECK(pt_kernel_opened_read(NULL, &value, 8, 0) == PT_E_HANDLE);

    pt_kernel_options *options = pt_kernel_options_new();
    CHECK(options);
    CHECK(pt_kernel_options_name(options, "two\nlines") == 0);
    CHECK(pt_kernel_load(kernel, argv[1], options) == PT_E_ARGUMENT);
    CHECK(pt_kernel_options_name(options, "rules") == 0);
    CHECK(pt_kernel_options_rights(options, PT_KERNEL_SEE_PACKETS | PT_KERNEL_LOG) == 0);
    CHECK(pt_kernel_options_on_fault(options, 3) == PT_E_ARGUMENT);
    CHECK(pt_kernel_options_on_fault(options, PT_KERNEL_END) == 0);
    CHECK(pt_kernel_options_segment(options, 0) == 0);
    CHECK(pt_kernel_options_memory(options, 1 << 20, 1) == 0);
    CHECK(pt_kernel_options_limit(options, 20) == 0);
    CHECK(pt_kernel_load(kernel, argv[1], options) == PT_E_MACHINE);
    CHECK(pt_kernel_options_free(options) == 0);
    CHECK(pt_kernel_load(kernel, argv[1], options) == PT_E_HANDLE);
    CHECK(pt_kernel_free(kernel) == 0 && pt_kernel_free(kernel) == PT_E_HANDLE);
    return 0;
}
