"""Bad graphs, feeds and files: one exact message each, exit status 2."""
import unittest

import support


class BadInput(support.Case):
    pass


if __name__ == "__main__":
    unittest.main()
