// SPDX-License-Identifier: GPL-2.0
/*
 * /proc/lfn_records: the calls of laws that are built in, as kernel/record.bpf.h has them, one after the other. To write
 * a number of bytes there makes room for so many; what finds no room is not recorded.
 */
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/proc_fs.h>
#include <linux/vmalloc.h>

static char *records;
static size_t room, used;

void *lfn_record(size_t bytes);
void *lfn_record(size_t bytes)
{
	char *at = records + used;

	if (room - used < bytes)
		return NULL;
	used += bytes;
	return at;
}

static ssize_t read_records(struct file *file, char __user *to, size_t bytes, loff_t *at)
{
	return simple_read_from_buffer(to, bytes, at, records, used);
}

static ssize_t write_room(struct file *file, const char __user *from, size_t bytes, loff_t *at)
{
	unsigned long wanted;
	int error = kstrtoul_from_user(from, bytes, 10, &wanted);

	if (error)
		return error;
	if (records)
		return -EBUSY;
	records = vzalloc(wanted);
	if (!records)
		return -ENOMEM;
	room = wanted;
	return bytes;
}

static const struct proc_ops operations = { .proc_read = read_records, .proc_write = write_room };

static int __init record_init(void)
{
	return proc_create("lfn_records", 0600, NULL, &operations) ? 0 : -ENOMEM;
}
late_initcall(record_init);
