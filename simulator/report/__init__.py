"""How results are shown: tables on a terminal, plots, and HTML pages that need no other files."""
