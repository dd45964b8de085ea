// SPDX-License-Identifier: GPL-2.0
/* The end of a run that cannot go on: says why, and switches the machine off. */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/reboot.h>

#include "fail.h"

void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	printf("lfnlab: ");
	vprintf(format, arguments);
	printf("\n");
	fflush(stdout);
	va_end(arguments);
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}
