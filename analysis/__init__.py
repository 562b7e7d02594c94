"""From recorded results to figures, tables, verdicts and a page. Reads what runs left behind; never runs anything."""
