"""What owns the parameters and turns parcels into updates."""
