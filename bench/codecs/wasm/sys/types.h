/* The part of the system's header that the codecs use. */
#pragma once
typedef long off_t;
