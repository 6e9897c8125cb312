"""``python -m overnight`` is the command ``overnight``."""

import sys

from overnight.cli.main import overnight

if __name__ == "__main__":
    sys.exit(overnight())
