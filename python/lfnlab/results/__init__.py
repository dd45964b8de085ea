"""Results: the store on the disk, its runs, its index, its care."""
