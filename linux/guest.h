/* SPDX-License-Identifier: GPL-2.0 */
/* Files, programs and network namespaces in this kernel. A failure ends the program. */
#ifndef GUEST_H
#define GUEST_H

/* Ends the program with `what` unless error is 0. */
void must(int error, const char *what);

void write_file(const char *name, const char *text);

/* Runs a program, its standard output into a file unless that is NULL; whether it succeeded. */
int run(char *const words[], const char *output);

/* Runs the lines as a batch of ip or tc. */
void batch(char *program, const char *lines);

/* Makes a namespace that ip knows by its name, and enters it. */
void make_namespace(const char *name);

void enter(const char *name);

/* Of the namespace that was entered last, by its name with dots. */
void set_sysctl(const char *name, const char *value);

#endif
