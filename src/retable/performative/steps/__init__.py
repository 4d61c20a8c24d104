"""The steps of the pipeline: counts, runs, LearnModel's error, the toy, evaluation, results."""
