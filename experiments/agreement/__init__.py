"""How well virtual time predicts what real processes do."""
