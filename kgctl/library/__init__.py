"""What ``import kgctl`` offers beside the command line. Its public names are those of ``kgctl.__all__``."""
