/* What csmith's programs print goes into a number. */
#pragma once
int print_into_result(const char *format, ...);
#define printf print_into_result
