/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FAIL_H
#define FAIL_H

/* Ends the program: the message goes to the kernel's console, which is the log. */
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
