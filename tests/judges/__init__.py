"""Random judges: tiny windows with everything that a document can say, and what must hold of every answer.

`windows.py` draws documents, `counterexample.py` looks for a plan below a bound by trying everything, `bounds.py` lets
all engines plan a window and compares every bound with every plan. `ruled_windows.py` draws windows with rules of a
site, `rules.py` compares what oracle, verifier and engines make of them, `shrinking.py` makes those that fail small;
`ruled_plans.py` is a table of fixed plans. ``scripts/random_judges`` runs thousands of cases; ``docs/reliability.md``
has its tables.
"""
