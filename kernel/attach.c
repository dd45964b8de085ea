/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* attach OBJECT: makes the law in a BPF object a congestion control of this kernel.
 *
 * Prints the law's name once it can be chosen, then waits for the end of its standard input. The
 * law lives as long as this process: it is held by a BPF link (Linux 6.4) that nothing pins, so
 * whatever ends the process, or the one that holds the other end of the pipe, removes the law.
 * Sockets that still use it keep the programs until they close.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Of linux/bpf.h; Debian's is older than the kernel. */
#define LINKED_MAP (1U << 13) /* BPF_F_LINK */
#define STRUCT_OPS_LINK 44    /* BPF_STRUCT_OPS */

static int fail(const char *path, const char *what)
{
	fprintf(stderr, "attach: %s: %s: %s\n", path, what, strerror(errno));
	return 1;
}

int main(int argc, char **argv)
{
	struct bpf_object *object;
	struct bpf_map *map;
	char byte;

	if (argc != 2) {
		fprintf(stderr, "usage: attach OBJECT\n");
		return 2;
	}
	object = bpf_object__open(argv[1]);
	if (!object)
		return fail(argv[1], "cannot open");
	bpf_object__for_each_map(map, object)
		if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS)
			break;
	if (!map || bpf_map__set_map_flags(map, LINKED_MAP))
		return fail(argv[1], "no struct_ops map");
	if (bpf_object__load(object))
		return fail(argv[1], "cannot load");
	/* For a linked map, libbpf's attach only fills it in; the link is what registers it. */
	if (!bpf_map__attach_struct_ops(map))
		return fail(argv[1], "cannot fill struct_ops map");
	if (bpf_link_create(bpf_map__fd(map), 0, (enum bpf_attach_type)STRUCT_OPS_LINK, NULL) < 0)
		return fail(argv[1], "cannot register");
	printf("%s\n", bpf_map__name(map));
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
