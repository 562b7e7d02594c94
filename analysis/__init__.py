"""From recorded results to figures, tables, verdicts and a page. Reads what runs left behind; never runs anything."""

import a3c_core  # noqa: F401 - first: from here on Ctrl-C is answered in one line
