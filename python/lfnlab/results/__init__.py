"""Results: the store, its runs, its index, its maintenance."""
