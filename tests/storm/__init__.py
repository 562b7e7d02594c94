"""Torture as a tool: `python -m tests.storm --minutes 10` sends signals, damages files, resumes, and counts. Linux."""
