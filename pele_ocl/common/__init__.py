"""Foundation of all rooms: errors, checks of arguments, text files read and replaced, small helpers of Python."""
