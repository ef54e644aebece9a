/* Handlers: they run on packets of a file where these lie, answer, move what they want to an area,
 * and fault. */
#include "check.h"
#include "packets.h"
#include <unistd.h>

/* A function that is asked while a handler runs does not wait for the handler. */
static int asked;
static int uses_its_own(void *handler, pt_question *question)
{
    pt_packet packet = { 0 };
    CHECK(question->service && pt_handler_counters(handler, NULL, NULL) == PT_E_BUSY);
    CHECK(pt_handler_run(handler, &packet) == PT_E_BUSY && !pt_handler_answer(handler, 0, NULL));
    asked += 1;
    return PT_ALLOW;
}

int main(int argc, char **argv)
{
    CHECK(argc == 4 && chdir(argv[1]) == 0);
    const int ports[] = { 7, 9, 11, 13, 80, 7 };
    const int count = sizeof ports / sizeof *ports;
    capture("all.pcap", ports, count);

    pt_image *image = pt_image_load(argv[2]);
    pt_shared *area = pt_shared_new(4096);
    pt_handler *handler = pt_handler_new(image, "echo", area);
    CHECK(handler && pt_image_free(image) == 0);
    pt_source *source = pt_source_file("all.pcap");
    pt_packet packet;
    size_t length = 99;
    uint64_t calls, faults;
    CHECK(!pt_handler_answer(handler, 0, &length) && length == 0 && pt_error_code() == PT_OK);

    /* It does not see the packets yet. */
    CHECK(pt_source_next(source, &packet) == 1 && pt_handler_run(handler, &packet) == PT_E_FAULT);
    CHECK(pt_fault_last()->kind == PT_FAULT_READ && pt_fault_last()->address >= packet.at);
    CHECK(pt_source_watch(source, pt_handler_domain(handler)) == 0);

    CHECK(pt_domain_set_decider(pt_handler_domain(handler), uses_its_own, handler) == 0);
    CHECK(pt_handler_run(handler, &packet) == 1 && asked == 2);
    CHECK(pt_domain_set_decider(pt_handler_domain(handler), NULL, NULL) == 0);

    const unsigned char *frame;
    for (int i = 0; i < count; i++) {
        CHECK(i == 0 || pt_source_next(source, &packet) == 1);
        int taken = pt_handler_run(handler, &packet);
        switch (ports[i]) {
        case 7:
            CHECK(taken == 1 && (frame = pt_handler_answer(handler, 0, &length)) && length == 60);
            CHECK(frame[35] == 7 && (frame[36] << 8 | frame[37]) == 1000);
            CHECK(pt_handler_answer(handler, 1, &length) && length == 38 && pt_handler_answer(handler, 1, NULL));
            CHECK(!pt_handler_answer(handler, 2, &length) && length == 0);
            break;
        case 9:
            CHECK(taken == PT_E_FAULT && pt_error_code() == PT_E_FAULT);
            CHECK(pt_fault_last()->kind == PT_FAULT_READ_ONLY && !strcmp(pt_fault_last()->domain, "echo"));
            CHECK(strstr(pt_fault_last()->place, "handler.c:") && strstr(pt_fault_report(), "echo"));
            CHECK(!pt_handler_answer(handler, 0, &length));
            break;
        case 11: {
            unsigned char moved[60];
            CHECK(taken == 1 && pt_shared_read(area, 0, moved, sizeof moved) == 0 && moved[37] == 11);
            break;
        }
        default:
            CHECK(taken == (ports[i] == 13) && !pt_handler_answer(handler, 0, NULL));
        }
    }
    CHECK(pt_source_next(source, &packet) == PT_E_END);
    CHECK(pt_handler_counters(handler, &calls, &faults) == 0 && calls == 8 && faults == 2);
    CHECK(pt_handler_counters(handler, NULL, NULL) == 0);

    /* Without an area there is none to write to. */
    image = pt_image_load(argv[2]);
    pt_handler *plain = pt_handler_new(image, NULL, NULL);
    CHECK(plain && pt_source_free(source) == 0 && (source = pt_source_file("all.pcap")));
    CHECK(pt_source_watch(source, pt_handler_domain(plain)) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(pt_source_next(source, &packet) == 1);
    CHECK(pt_handler_run(plain, &packet) == 0 && pt_handler_run(plain, NULL) == PT_E_ARGUMENT);

    /* A program as a filter is an extension like any other. */
    pt_domain *program = pt_domain_new(image, pt_options_new());
    CHECK(!program && pt_error_code() == PT_E_UNRESOLVED);
    int (*filter)(pt_offset, unsigned, unsigned) = PT_SYM(pt_handler_domain(plain), int, filter, (pt_offset, unsigned, unsigned));
    CHECK(filter && filter(packet.at, packet.length, packet.wire_length) == 1 && !pt_fault_last());

    /* What is no handler, and what is none any more. */
    pt_image *other = pt_image_load(argv[3]);
    CHECK(other && !pt_handler_new(other, NULL, NULL) && pt_error_code() == PT_E_MISSING && strstr(pt_error_message(), "int handle("));
    CHECK(!pt_handler_new(NULL, NULL, NULL) && pt_error_code() == PT_E_HANDLE);
    CHECK(!pt_handler_new(image, NULL, (pt_shared *)image) && pt_error_code() == PT_E_HANDLE);
    pt_domain *domain = pt_handler_domain(plain);
    CHECK(!strcmp(pt_domain_name(domain), "handler") && pt_handler_free(plain) == 0 && pt_handler_free(plain) == PT_E_HANDLE);
    CHECK(pt_handler_run(plain, &packet) == PT_E_HANDLE && !pt_handler_domain(plain) && pt_domain_poisoned(domain) == PT_E_HANDLE);
    CHECK(!pt_handler_answer(plain, 0, &length) && pt_error_code() == PT_E_HANDLE);
    CHECK(pt_handler_run((pt_handler *)source, &packet) == PT_E_HANDLE);
    CHECK(pt_handler_free(handler) == 0 && pt_source_free(source) == 0 && pt_shared_free(area) == 0);
    CHECK(pt_image_free(image) == 0 && pt_image_free(other) == 0);
    puts("handlers: fine");
    return 0;
}
