"""The steps of the HSTU reproduction: one module a rule."""
