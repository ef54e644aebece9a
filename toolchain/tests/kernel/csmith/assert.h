/* Nothing that is used of it. */
#pragma once
#define assert(x) ((void)0)
