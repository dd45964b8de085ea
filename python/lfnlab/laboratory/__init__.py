"""The laboratory in the browser: a page that simulates."""
