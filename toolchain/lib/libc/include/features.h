/* Which functions of which standard are declared: <sys/features.h> says it. */
#ifndef _FEATURES_H
#define _FEATURES_H

#include <sys/features.h>

#endif
