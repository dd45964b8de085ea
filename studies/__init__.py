"""Questions that papers leave open, answered by runs: a module a paper, a command a question."""
