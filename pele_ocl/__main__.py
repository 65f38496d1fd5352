"""`python -m pele_ocl`: the command, where the script folder is not on the path."""

from .cli import main

if __name__ == "__main__":
    main(prog_name="pele-ocl")
