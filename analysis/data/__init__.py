"""What a study's runs hold: read, cut into curves, kept in compact tables, and asked for numbers with intervals."""
