"""The contract between those who make results and those who read them: layout, words, settings, and what is whole."""
