"""The one kind of error that a user can mend: bad input, bad configuration, bad data."""


class InputError(ValueError):
    """Something the user gave is wrong: one line that names it, the value and what is allowed.

    A job that ends with it is not tried again: the same input fails the same way.
    """
