"""The steps of the robust Markov games: run, evaluate, table, speed, figure."""
